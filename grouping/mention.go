package grouping

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Member is somebody whom notes can mention, and to whom groups are assigned.
type Member struct{ ID, Name string }

// MaxMentions is how many members a note mentions at most.
const MaxMentions = 10

// A Span is a part of a note. Member is whom it mentions; empty: nobody.
type Span struct{ Text, Member string }

// Spans parts a note into mentions and the text between them. A mention is @
// and the id or the name of a member, in whatever case, or the first word of
// the name if no other name begins with it; unknown are those of nobody.
func SpansOf(note string, members []Member) (spans []Span, unknown []string) {
	plain, at := 0, 0 // what follows plain is in no span yet
	for {
		sign := strings.IndexByte(note[at:], '@')
		if sign < 0 {
			break
		}
		sign += at
		at = sign + 1
		if before, _ := utf8.DecodeLastRuneInString(note[:sign]); isWord(before) {
			continue // of an address
		}
		member, length := mentioned(note[at:], members)
		if member == "" {
			if word := unknownName(note[at:]); word != "" && !slices.Contains(unknown, word) {
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

// mentioned is the member whom a text begins with, and how long that is: the
// longest that fits. A name that several have is nobody's.
func mentioned(text string, members []Member) (member string, length int) {
	take := func(name, id string) {
		switch n := prefixFold(text, name); {
		case n > length:
			member, length = id, n
		case n == length && n > 0 && id != member:
			member = ""
		}
	}
	for _, m := range members {
		first, _, _ := strings.Cut(m.Name, " ")
		take(m.ID, m.ID)
		take(m.Name, m.ID)
		take(first, m.ID)
	}
	return member, length
}

// prefixFold is how many bytes of text are the name, in whatever case; 0: it
// does not begin with that word.
func prefixFold(text, name string) (length int) {
	for range utf8.RuneCountInString(name) {
		_, size := utf8.DecodeRuneInString(text[length:])
		length += size
	}
	after, _ := utf8.DecodeRuneInString(text[length:])
	if !strings.EqualFold(text[:length], name) || isWord(after) {
		return 0
	}
	return length
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

// mention has a decision name the members whom its note mentions.
func (d *Decision) mention(members []Member) error {
	spans, unknown := SpansOf(d.Note, members)
	for _, s := range spans {
		if s.Member != "" && !slices.Contains(d.Mentions, s.Member) {
			d.Mentions = append(d.Mentions, s.Member)
		}
	}
	if len(d.Mentions) > MaxMentions {
		return Invalid{"note", fmt.Sprintf("The note mentions %d members.", len(d.Mentions)), fmt.Sprintf("Mention at most %d.", MaxMentions)}
	}
	d.Unknown = unknown[:min(len(unknown), MaxMentions)]
	return nil
}

// memberNamed finds the member with an id or a name that no other has.
func memberNamed(name string, members []Member) (found Member, is bool) {
	for _, m := range members {
		if m.ID == name {
			return m, true
		}
		if strings.EqualFold(m.Name, name) {
			if is {
				return Member{}, false
			}
			found, is = m, true
		}
	}
	return found, is
}
