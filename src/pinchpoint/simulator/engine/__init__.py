"""One engine process: continuous batching on paged KV blocks, step by step, in virtual time."""
