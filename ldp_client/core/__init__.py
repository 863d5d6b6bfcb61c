"""The device core: exact integer arithmetic, samplers and quantising."""
