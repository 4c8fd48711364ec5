"""flagwise: validates, completes and explains SGLang launches. The flow of data is in docs/architecture.md."""
