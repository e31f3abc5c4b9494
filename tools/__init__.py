"""What writes and checks the documentation; nothing of it is installed or imported by the product."""
