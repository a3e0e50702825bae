package grouping

import (
	"cmp"
	"strings"
)

// Bounds of a description, in bytes.
const (
	maxTitle   = 200
	maxType    = 200
	maxCulprit = 200
	maxShown   = 100 // frames of one exception
)

// Description is what people see of an error.
// It shares no memory with the Grouper.
type Description struct {
	Title      string // type and message, on one line
	Type       string // as sent, else as in the trace
	Culprit    string // the innermost own frame, without numbers that change
	Language   Language
	Exceptions []Exception // the root cause first; each one's innermost call first
}

// Part is one thing that a group's hash was made of.
type Part struct {
	Kind  string // "type", "message", "call" or "frame"
	Value string
}

// An Explanation is why an error belongs to its group.
type Explanation struct {
	Version  int
	Scope    HashScope
	Hash     Hash
	Language Language
	Parts    []Part // what the deciding hash covers
	Rule     Rule   // by which they were chosen
}

// Rule is how a group was distinguished. Rules are stored,
// so they are never renamed; an unknown one is its own text.
type Rule string

// The rules.
const (
	RuleSite      Rule = "site"
	RuleFunction  Rule = "function"
	RuleRecursion Rule = "recursion"
	RuleMessage   Rule = "message"
)

var ruleTexts = map[Rule]string{
	RuleSite: "Errors with this type, these first words of the message and these innermost frames of the root cause, " +
		"which failed in the same call of a library if in any, are one group.",
	RuleFunction:  "Errors of this type are mistakes where they are thrown: those from this function are one group.",
	RuleRecursion: "Endless recursion: errors of this type that go through the same functions are one group.",
	RuleMessage:   "There is no usable stack trace: errors with this type and this message, values aside, are one group.",
}

// Text explains a rule.
func (r Rule) Text() string { return cmp.Or(ruleTexts[r], string(r)) }

// Describe returns a description of the error.
func (f Fingerprint) Describe() Description {
	g := f.grouper
	s := g.outermost()
	d := Description{
		Title:    g.title(s),
		Type:     strings.Clone(clip(firstLine(s.typ), maxType)),
		Culprit:  g.culprit(),
		Language: g.trace.syntax.language,
	}
	for _, s := range g.trace.spans {
		frames := g.trace.frames[s.first:min(s.end, s.first+maxShown)]
		d.Exceptions = append(d.Exceptions, Exception{s.typ, s.message, append([]Frame(nil), frames...), s.end - s.first - len(frames)})
	}
	return d
}

func (g *Grouper) title(s span) string {
	typ, message := firstLine(s.typ), firstLine(s.message)
	switch {
	case typ != "" && message != "" && message != typ:
		return clip(typ+": "+message, maxTitle)
	case typ != "" || message != "":
		return clip(typ+message, maxTitle)
	case g.culprit() != "":
		return g.culprit()
	}
	return "Error"
}

func (g *Grouper) culprit() string {
	if len(g.trace.site) == 0 {
		return ""
	}
	f := &g.trace.frames[g.trace.site[0]]
	switch g.trace.syntax.language {
	case JavaScript, Python, Ruby:
		return clip(locationOf(f), maxCulprit)
	}
	return clip(strings.TrimSuffix(string(g.trace.identity(g.trace.site[0])), ":"), maxCulprit)
}

// locationOf names a frame by function and file.
func locationOf(f *Frame) string {
	file := string(appendFileName(nil, withoutQuery(f.File)))
	switch {
	case f.Function == "":
		return file
	case file == "":
		return f.Function
	}
	return f.Function + " (" + file + ")"
}

// Explain returns how the error is grouped.
func (f Fingerprint) Explain() Explanation {
	g, decides := f.grouper, f.Deciding()
	why := Explanation{Version: decides.Version, Scope: decides.Scope, Hash: decides.Hash, Language: g.trace.syntax.language}
	if decides.Scope == ScopeMessage {
		return g.explainMessage(why)
	}
	return g.explainSite(why)
}

func (g *Grouper) explainMessage(why Explanation) Explanation {
	s := g.outermost()
	why.Parts = appendPart(why.Parts, "type", g.appendTypeName(nil, s.typ))
	why.Parts = appendPart(why.Parts, "message", appendWholeMessage(nil, s))
	why.Rule = RuleMessage
	return why
}

func (g *Grouper) explainSite(why Explanation) Explanation {
	why.Parts = appendPart(why.Parts, "type", g.kind)
	if len(g.cycle) > 0 {
		for _, name := range g.cycle {
			why.Parts = appendPart(why.Parts, "frame", name)
		}
		why.Rule = RuleRecursion
		return why
	}
	level := Levels[deciding]
	if why.Rule = RuleFunction; !g.fault {
		why.Rule = RuleSite
		why.Parts = appendPart(why.Parts, "message", g.words.append(nil, level.Words))
	}
	why.Parts = appendPart(why.Parts, "call", g.callee(level))
	for _, i := range g.deciders(level) {
		why.Parts = appendPart(why.Parts, "frame", g.trace.identity(i))
	}
	return why
}

func appendPart(parts []Part, kind string, value []byte) []Part {
	if text := strings.TrimSpace(string(value)); text != "" {
		return append(parts, Part{kind, text})
	}
	return parts
}
