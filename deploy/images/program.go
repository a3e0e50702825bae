package images

import "path"

// A Program is the content of an image.
type Program struct {
	Main        string // its main package, relative to the root of the repository
	Description string
	Serves      bool // it listens until it is stopped
}

// Programs are all programs.
var Programs = []Program{
	{"ingest/cmd/ingest", "The front door of Weir: takes log entries in, keeps them, finds them again.", true},
	{"ledger/cmd/ledger", "The quota ledger of Weir: charges what was accepted, answers for balances.", true},
	{"grouping/cmd/grouping", "The error grouping of Weir: which errors in the logs are the same.", true},
	{"tenants/cmd/tenants", "Organizations, projects, API keys and members of Weir, and its console.", true},
	{"deploy/cmd/gateway", "Weir's whole HTTP API on one address.", true},
	{"deploy/cmd/weir", "Weir's tools: creates topics, shows parked records, runs everything in one process.", false},
	{"ledger/cmd/ledger-verify", "Checks every balance of Weir's ledger against its log.", false},
	{"ledger/cmd/ledger-rebuild", "Rebuilds Weir's ledger from the log and its decisions, and compares the two.", false},
}

// Name returns the name of the program and its image.
func (p Program) Name() string { return path.Base(p.Main) }
