"""From the decoded key of a call to a plan: describe, resolve, vectorize, gradients, emit, layout, compile.

Each stage maps one frozen record of `ir` to the next; none of them sees a Python value of the call.
"""
