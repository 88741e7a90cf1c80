"""What PyTorch imports only when it is asked for: a look at the attribute of that name does so."""
