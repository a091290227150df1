"""kvgate beside other gateways in front of one emulated fleet in real time; see docs/race.md."""
