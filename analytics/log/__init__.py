"""Reading the CommitLog many records at a time, ours or a broker's, with numpy alone."""
