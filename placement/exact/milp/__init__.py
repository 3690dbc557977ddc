"""Linear and mixed-integer programs as arrays, HiGHS beneath them, and bounds that hold whatever it did."""
