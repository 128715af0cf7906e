/// Configurations and engines.
