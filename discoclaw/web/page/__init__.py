"""The admin's page: server-rendered, for one person at a time on this machine, without JavaScript."""
