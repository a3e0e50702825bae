// Package tenants is the domain of who uses an installation: organizations, projects, API keys, service tokens and people. Each noun is a
// state that events bring forward (Apply) and methods that return the events of a command. Time, ids and randomness are part of the
// command: it does no I/O.
package tenants

// Installation stands in for an organization where something belongs to the installation as a whole, such as an
// operator's token. No organization has it as its id.
const Installation = "*"
