"""flagwise: validates, completes and explains SGLang launches. The flow of data is in docs/architecture.md."""

__version__ = "0.1.0"
