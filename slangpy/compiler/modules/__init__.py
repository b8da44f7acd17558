"""Modules of users as the compiler has them: their files and texts, what they were made of, and their reload."""
