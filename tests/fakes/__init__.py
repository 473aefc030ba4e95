"""Hand-written stand-ins for what evalrun talks to: a bot, model servers, and a project around them."""
