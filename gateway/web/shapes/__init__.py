"""What goes into the operations and what comes out, a file per family; handlers, catalogue and OpenAPI read it."""
