"""Real llama.cpp servers on this machine, for `kvgate demo` and the tests: models, launch, the server itself."""
