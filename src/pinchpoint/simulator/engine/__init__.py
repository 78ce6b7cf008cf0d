"""One engine process: continuous batching on paged KV blocks, step by step, in virtual time.

It is given requests and conditions from outside, and knows neither where they come from nor who looks at it.
"""
