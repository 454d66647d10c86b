"""The program's own HTTP servers, for whoever runs it: health and metrics, and the admin's page."""
