package grouping

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Member is somebody whom notes can mention, and to whom groups are assigned.
type Member struct{ ID, Name string }

// Bounds of what a note mentions.
const (
	MaxMentions = 10  // members
	MaxSigns    = 100 // @ that can begin a mention; after those all is text
)

// A Span is a part of a note. Member is whom it mentions; empty: nobody.
type Span struct{ Text, Member string }

// SpansOf parts a note into mentions and the text between them. A mention is @
// and the id or the name of a member, in whatever case, or the first word of
// the name if no other name begins with it; unknown are those of nobody, the
// first MaxMentions of them.
func SpansOf(note string, members []Member) (spans []Span, unknown []string) {
	names := newNames(members)
	plain, at := 0, 0 // what follows plain is in no span yet
	for signs := 0; signs < MaxSigns; {
		sign := strings.IndexByte(note[at:], '@')
		if sign < 0 {
			break
		}
		sign += at
		at = sign + 1
		if before, _ := utf8.DecodeLastRuneInString(note[:sign]); isWord(before) {
			continue // of an address
		}
		signs++
		member, length := names.mentioned(note[at:])
		if member == "" {
			if word := unknownName(note[at:]); word != "" && len(unknown) < MaxMentions && !slices.Contains(unknown, word) {
				unknown = append(unknown, word)
			}
			continue
		}
		if plain < sign {
			spans = append(spans, Span{Text: note[plain:sign]})
		}
		plain = at + length
		spans = append(spans, Span{note[sign:plain], member})
		at = plain
	}
	if plain < len(note) {
		spans = append(spans, Span{Text: note[plain:]})
	}
	return spans, unknown
}

// names are what notes call members.
type names struct {
	ids     map[string]string // of members, by what fold makes of the name; empty: several have it; bounded by the members
	longest int               // bytes of a folded name
}

func newNames(members []Member) names {
	n := names{ids: make(map[string]string, 3*len(members))}
	for _, m := range members {
		first, _, _ := strings.Cut(m.Name, " ")
		for _, name := range []string{m.ID, m.Name, first} {
			n.add(strings.Map(fold, name), m.ID)
		}
	}
	return n
}

func (n *names) add(folded, id string) {
	if folded == "" {
		return
	}
	if of, taken := n.ids[folded]; taken && of != id {
		id = ""
	}
	n.ids[folded] = id
	n.longest = max(n.longest, len(folded))
}

// mentioned is the member whom a text begins with, and how long that is: the
// longest that fits. A name that several have is nobody's.
func (n *names) mentioned(text string) (member string, length int) {
	folded := make([]byte, 0, n.longest+utf8.UTFMax)
	for at, r := range text {
		if id, is := n.ids[string(folded)]; is && !isWord(r) {
			member, length = id, at
		}
		if len(folded) >= n.longest {
			return member, length
		}
		folded = utf8.AppendRune(folded, fold(r))
	}
	if id, is := n.ids[string(folded)]; is {
		member, length = id, len(text)
	}
	return member, length
}

// fold makes letters the same that [strings.EqualFold] takes for the same.
func fold(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}

// unknownName is the word that a text begins with, unless that looks like code.
func unknownName(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) && r != '.' && r != '-' })
	if end < 0 {
		end = len(text)
	}
	if end < len(text) && (text[end] == '/' || text[end] == '(') {
		return ""
	}
	return strings.TrimRight(text[:end], ".-")
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) && r != utf8.RuneError
}

// Named is the command with the members whom it names: as the assignee, and in
// the note.
func (c Command) Named(members []Member) Command {
	if c.Assign != nil {
		to := AssigneeNamed(c.Assign.ID, members)
		c.Assign = &to
	}
	c.Mentions = nil
	var spans []Span
	spans, c.Unknown = SpansOf(c.Note, members)
	for _, s := range spans {
		if s.Member != "" && !slices.Contains(c.Mentions, s.Member) {
			c.Mentions = append(c.Mentions, s.Member)
		}
	}
	return c
}

// AssigneeNamed is the member with an id or a name, or else a label.
func AssigneeNamed(name string, members []Member) Assignee {
	if m, is := memberNamed(name, members); is {
		return Assignee(m)
	}
	return Assignee{ID: name}
}

// memberNamed finds the member with an id or a name that no other has.
func memberNamed(name string, members []Member) (found Member, is bool) {
	for _, m := range members {
		if m.ID == name {
			return m, true
		}
		if name != "" && strings.EqualFold(m.Name, name) {
			if is {
				return Member{}, false
			}
			found, is = m, true
		}
	}
	return found, is
}
