// Package tenants is who uses an installation: organizations, their projects, the API keys of those, and the tokens of
// services. It holds the decisions and nothing else: each noun is a state that events bring forward (Apply) and methods
// that say which events follow from a command. Time, ids and randomness are part of the command.
package tenants

// Installation stands in for an organization where something belongs to the installation as a whole, such as an
// operator's token. No organization has it as its id.
const Installation = "*"
