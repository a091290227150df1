"""The ledger behind a small contract: in this process, or shared by several gateways."""
