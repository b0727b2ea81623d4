"""The proxy through which somebody's own agent reaches its model: keys stay outside, and each call is paid once."""
