// Package tenants is the domain of who uses an installation: organizations,
// projects, API keys, service tokens and people, each a state with methods
// that apply events (Apply) and that return the events of a command. It does
// no I/O: time, ids and randomness are part of the command.
package tenants

// Installation replaces the organization of what belongs to the installation as
// a whole, such as an operator's token. No organization has this id.
const Installation = "*"
