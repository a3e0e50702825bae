package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of the rules about who looks after new groups.
const (
	MaxOwnerRules   = 50  // of a project
	maxOwnerPattern = 200 // bytes
	maxOwnedFrames  = 20  // of own code that are compared, innermost first
)

// An OwnerRule says who looks after new groups of a project: those that match
// all of its patterns. In a pattern * stands for any characters; in a path it
// ends at a slash, and ** does not.
type OwnerRule struct {
	Path        string `json:"path,omitempty"`     // of a file of own code; without a slash before it, below any folder
	Function    string `json:"function,omitempty"` // of own code, with or without its module
	Environment string `json:"environment,omitempty"`
	Service     string `json:"service,omitempty"`
	Host        string `json:"host,omitempty"`
	Release     string `json:"release,omitempty"`
	Assignee    string `json:"assignee"` // a member's id or a label

	Metadata map[string]string `json:"metadata,omitempty"` // patterns of values at paths, as in Paths; bounded by maxRulePaths
}

// OwnerFields are the names of a rule's patterns, in the order in which they are written.
var OwnerFields = [...]string{"path", "function", "environment", "service", "host", "release"}

// pattern is the pattern of one of OwnerFields.
func (r *OwnerRule) pattern(name string) *string {
	return [...]*string{&r.Path, &r.Function, &r.Environment, &r.Service, &r.Host, &r.Release}[slices.Index(OwnerFields[:], name)]
}

// An ownerPattern is one of a rule. Its name is one of OwnerFields, or a path in metadata.
type ownerPattern struct{ name, pattern string }

// patterns are those of a rule in the order in which they are written.
func (r *OwnerRule) patterns() (all []ownerPattern) {
	for _, name := range OwnerFields {
		if pattern := *r.pattern(name); pattern != "" {
			all = append(all, ownerPattern{name, pattern})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.Metadata)) {
		all = append(all, ownerPattern{string(fieldMetadata) + path, r.Metadata[path]})
	}
	return all
}

// ownerFields are all for people.
var ownerFields = strings.Join(OwnerFields[:], ", ") + ", metadata.NAME"

// String writes the patterns of a rule.
func (r OwnerRule) String() string {
	var words []string
	for _, p := range r.patterns() {
		words = append(words, p.name+":"+quoteWord(p.pattern))
	}
	return strings.Join(words, " ")
}

func quoteWord(word string) string {
	if strings.ContainsAny(word, ` "`) {
		return `"` + word + `"`
	}
	return word
}

// Owners are the rules of a project. The first one that matches counts.
type Owners []OwnerRule

// Equal reports whether rules are the same in the same order.
func (o Owners) Equal(other Owners) bool {
	return slices.EqualFunc(o, other, func(a, b OwnerRule) bool { return a.Assignee == b.Assignee && slices.Equal(a.patterns(), b.patterns()) })
}

// Paths are those in metadata that rules ask for, sorted.
func (o Owners) Paths() []string {
	asked := map[string]string{} // bounded by the rules
	for _, rule := range o {
		maps.Copy(asked, rule.Metadata)
	}
	return slices.Sorted(maps.Keys(asked))
}

// Check returns the first fault, an Invalid.
func (o Owners) Check() error {
	if len(o) > MaxOwnerRules {
		return Invalid{"rules", fmt.Sprintf("There are %d rules.", len(o)), fmt.Sprintf("Use at most %d.", MaxOwnerRules)}
	}
	if n := len(o.Paths()); n > maxRulePaths {
		return Invalid{"rules", fmt.Sprintf("The rules ask for %d different values of metadata.", n), fmt.Sprintf("Ask for at most %d.", maxRulePaths)}
	}
	for i, rule := range o {
		field := fmt.Sprintf("rules/%d/", i)
		if rule.String() == "" {
			return Invalid{strings.TrimSuffix(field, "/"), fmt.Sprintf("Rule %d has no pattern.", i+1),
				"Name a " + ownerFields + "; path:** is any."}
		}
		for _, p := range rule.patterns() {
			if fault := p.check(); fault != (Invalid{}) {
				return Invalid{field + fault.Field, fmt.Sprintf("Rule %d: %s", i+1, fault.Detail), fault.Fix}
			}
		}
		if rule.Assignee == "" || utf8.RuneCountInString(rule.Assignee) > MaxAssignee || !isLine(rule.Assignee) {
			return Invalid{field + "assignee", fmt.Sprintf("Rule %d assigns to %q.", i+1, trace.Clip(rule.Assignee, MaxAssignee)),
				fmt.Sprintf("Use a member's id or a label of one line and 1 to %d characters.", MaxAssignee)}
		}
	}
	return nil
}

// check returns what is wrong with a pattern; zero: nothing is.
func (p ownerPattern) check() Invalid {
	field := p.name
	if path, is := strings.CutPrefix(p.name, string(fieldMetadata)); is {
		field = "metadata"
		if !isPath(path) || strings.ContainsAny(path, `:"`) {
			return Invalid{field, fmt.Sprintf("%q is not a path in metadata.", trace.Clip(path, maxPath)),
				fmt.Sprintf("Use names with dots between, such as tenant.id; at most %d bytes without colons and quotes.", maxPath)}
		}
	}
	if p.pattern == "" || len(p.pattern) > maxOwnerPattern || !isLine(p.pattern) || strings.Contains(p.pattern, `"`) {
		return Invalid{field, fmt.Sprintf("The pattern of %s is %q.", p.name, trace.Clip(p.pattern, maxOwnerPattern)),
			fmt.Sprintf("Use one line of 1 to %d bytes without quotes.", maxOwnerPattern)}
	}
	return Invalid{}
}

// Owned is what rules look at of a group.
type Owned struct {
	Metadata                                map[string]string // of its first error, at the paths that rules asked for when it came; bounded by these
	Calls                                   []Call            // of own code, innermost first
	Environments, Services, Hosts, Releases []string
}

// Tagged adds the values of tags.
func (o *Owned) Tagged(tags *[len(Tags)]Distribution) {
	for i, into := range [len(Tags)]*[]string{&o.Environments, &o.Releases, &o.Services, &o.Hosts} { // those of Tags
		for _, share := range tags[i] {
			*into = append(*into, share.Name)
		}
	}
}

// A Call is where own code was called.
type Call struct{ File, Function string }

// CallsOf are the own calls of a chain of errors, the root cause first.
func CallsOf(exceptions []trace.Exception) (calls []Call) {
	for _, x := range exceptions {
		for _, f := range x.Frames {
			if f.InApp && len(calls) < maxOwnedFrames {
				calls = append(calls, Call{f.File, strings.TrimPrefix(f.Module+"."+f.Function, ".")})
			}
		}
	}
	return calls
}

// Assign is the decision that gives a group to whom the first matching rule
// names, if nobody has it.
func (o Owners) Assign(to *Owned, s State, version int64) (d Decision, follows bool) {
	if s.Assignee.ID != "" || s.Into != "" || version >= MaxDecisions {
		return Decision{}, false
	}
	for i := range o {
		if rule := &o[i]; rule.matches(to) {
			return Decision{Kind: WasAssigned, Assignee: Assignee{ID: rule.Assignee}, Reason: fmt.Sprintf("Rule %d matched: %s.", i+1, rule)}, true
		}
	}
	return Decision{}, false
}

func (r *OwnerRule) matches(of *Owned) bool {
	inCall := func(matches func(pattern string, c Call) bool, pattern string) bool {
		return pattern == "" || slices.ContainsFunc(of.Calls, func(c Call) bool { return matches(pattern, c) })
	}
	return inCall(matchesFile, r.Path) && inCall(matchesFunction, r.Function) && matchesAny(r.Environment, of.Environments) &&
		matchesAny(r.Service, of.Services) && matchesAny(r.Host, of.Hosts) && matchesAny(r.Release, of.Releases) && r.matchesMetadata(of.Metadata)
}

func (r *OwnerRule) matchesMetadata(of map[string]string) bool {
	for path, pattern := range r.Metadata {
		if value := of[path]; value == "" || !matchGlob(pattern, value, 0) {
			return false
		}
	}
	return true
}

func matchesAny(pattern string, values []string) bool {
	return pattern == "" || slices.ContainsFunc(values, func(value string) bool { return matchGlob(pattern, value, 0) })
}

func matchesFunction(pattern string, c Call) bool {
	return matchGlob(pattern, c.Function, 0) || matchGlob(pattern, c.Function[strings.LastIndexByte(c.Function, '.')+1:], 0)
}

// matchesFile compares from the root, or below any folder. A folder stands for
// all that is in it.
func matchesFile(pattern string, c Call) bool {
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	file := strings.ReplaceAll(c.File, `\`, "/")
	if strings.HasPrefix(pattern, "/") {
		return matchGlob(pattern, "/"+strings.TrimPrefix(file, "/"), '/')
	}
	for {
		if matchGlob(pattern, file, '/') {
			return true
		}
		slash := strings.IndexByte(file, '/')
		if slash < 0 {
			return false
		}
		file = file[slash+1:]
	}
}

// matchGlob reports whether a pattern matches all of a text: * is any characters
// but the separator, ** is any. It takes time in proportion to both lengths
// at most, as only the last star of each kind is tried again.
func matchGlob(pattern, text string, separator byte) bool {
	type place struct{ pattern, text int }
	none := place{-1, -1}
	p, t, star, stars := 0, 0, none, none
	for {
		switch {
		case strings.HasPrefix(pattern[p:], "**"):
			p += 2
			stars, star = place{p, t}, none
			continue
		case p < len(pattern) && pattern[p] == '*':
			p++
			star = place{p, t}
			continue
		case p == len(pattern) && t == len(text):
			return true
		case p < len(pattern) && t < len(text) && pattern[p] == text[t]:
			p, t = p+1, t+1
			continue
		}
		switch {
		case star != none && star.text < len(text) && (separator == 0 || text[star.text] != separator):
			star.text++
			p, t = star.pattern, star.text
		case stars != none && stars.text < len(text):
			stars.text++
			p, t, star = stars.pattern, stars.text, none
		default:
			return false
		}
	}
}

// ParseOwners reads rules as people write them, one a line: patterns, =>, and
// who looks after what matches. A # begins a comment.
func ParseOwners(text string) (rules Owners, err error) {
	for n, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		rule, fault := parseOwner(line)
		if fault != "" {
			return nil, Invalid{"rules", fmt.Sprintf("Line %d: %s", n+1, fault), "Write such as path:src/pay/** environment:prod => Payments."}
		}
		rules = append(rules, rule)
	}
	return rules, rules.Check()
}

const ownerArrow = "=>"

func parseOwner(line string) (rule OwnerRule, fault string) {
	at := strings.LastIndex(line, ownerArrow)
	if at < 0 {
		return rule, fmt.Sprintf("%q has no %s.", trace.Clip(line, maxOwnerPattern), ownerArrow)
	}
	rule.Assignee = strings.TrimSpace(line[at+len(ownerArrow):])
	for rest := strings.TrimSpace(line[:at]); rest != ""; rest = strings.TrimSpace(rest) {
		name, after, found := strings.Cut(rest, ":")
		path, ofMetadata := strings.CutPrefix(name, string(fieldMetadata))
		if !found || !ofMetadata && !slices.Contains(OwnerFields[:], name) {
			return rule, fmt.Sprintf("%q is not one of %s.", trace.Clip(name, maxOwnerPattern), ownerFields)
		}
		var value string
		if quoted, is := strings.CutPrefix(after, `"`); is {
			value, rest, _ = strings.Cut(quoted, `"`)
		} else {
			value, rest, _ = strings.Cut(after, " ")
		}
		if !rule.add(name, path, value) {
			return rule, name + " is named twice."
		}
	}
	return rule, ""
}

// add adds a pattern, of a path in metadata unless that is its name, if it is the first of its name.
func (r *OwnerRule) add(name, path, pattern string) bool {
	if path == name {
		into := r.pattern(name)
		first := *into == ""
		*into = pattern
		return first
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{} // bounded by the line
	}
	_, again := r.Metadata[path]
	r.Metadata[path] = pattern
	return !again
}

// ByID are the rules with the ids of members in place of their names.
func (o Owners) ByID(members []Member) Owners {
	return o.renamed(func(assignee string) string {
		if m, is := memberNamed(assignee, members); is {
			return m.ID
		}
		return assignee
	})
}

// ByName are the rules with the names of members in place of their ids, where
// a name says who it is.
func (o Owners) ByName(members []Member) Owners {
	return o.renamed(func(assignee string) string {
		for _, m := range members {
			if named, is := memberNamed(m.Name, members); m.ID == assignee && is && named.ID == m.ID {
				return m.Name
			}
		}
		return assignee
	})
}

func (o Owners) renamed(name func(assignee string) string) Owners {
	o = slices.Clone(o)
	for i := range o {
		o[i].Assignee = name(o[i].Assignee)
	}
	return o
}

// Text writes rules as ParseOwners reads them.
func (o Owners) Text() string {
	var b strings.Builder
	for _, rule := range o {
		fmt.Fprintf(&b, "%s %s %s\n", rule, ownerArrow, rule.Assignee)
	}
	return b.String()
}
