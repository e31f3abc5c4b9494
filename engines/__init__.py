"""Four noise-robust training methods and a plain baseline, behind one contract: arrays in, arrays out."""
