package ui

import "time"

// Rules are those of a project: what there is, and an editor. The template "rules"
// shows them on a page that defines "rules-about", what they are; "rules-hint", how
// they are read; "rules-preview", with Preview as its dot, and "rules-examples", with Examples.
type Rules struct {
	Path     string // of the page
	Projects []Choice
	Project  string
	May      bool   // the reader may change them
	Text     string // in the editor
	Note     Field
	Version  int64  // that the editor is based on
	Fault    string // of the text
	Opened   int64  // an earlier version is in the editor; 0: none
	Preview  any    // nil: none
	Examples any
	Versions []RulesVersion // the newest first
}

// A RulesVersion is one of them.
type RulesVersion struct {
	Number   int64
	At       time.Time
	Who      string
	Note     string
	Restored int64  // the version whose text it is; 0: none
	Href     string // opens it; empty: it is in force
}
