"""What a request will cost and how fast a backend is: priors from first principles, corrected by what is observed."""
