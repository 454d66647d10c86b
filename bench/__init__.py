"""What DiscoClaw costs, beside the plainest thing that could do the same in the same run."""
