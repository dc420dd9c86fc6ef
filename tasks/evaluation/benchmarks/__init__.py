"""The benchmarks: one module declares all there is to know of one, and `registry` lists them."""
