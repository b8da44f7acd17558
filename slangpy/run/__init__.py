"""What serves running calls: results, globals, raw dispatch, users' classes."""
