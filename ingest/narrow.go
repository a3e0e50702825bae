package ingest

import (
	"strings"
	"unicode/utf8"
)

// And returns the text of the query that also asks for a term; it is
// its own text where the term can't be read.
func (q Query) And(term string) string {
	of, err := ParseQuery(term)
	switch {
	case err != nil || of.root == nil:
		return q.text
	case q.root == nil:
		return term
	}
	return q.factor() + " " + of.factor()
}

// factor is the text, in parentheses where it has alternatives.
func (q Query) factor() string {
	if _, alternatives := q.root.(either); alternatives {
		return "(" + q.text + ")"
	}
	return q.text
}

// Term returns the term of a query that finds a value of a field; false
// where none does.
func Term(path, value string) (term string, ok bool) {
	if strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || value == "" {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	term = path + ":" + value
	if _, err := ParseField(path); err != nil || path == FieldProject || path == FieldPattern || path == "exists" {
		return "", false
	}
	query, err := ParseQuery(term)
	switch query.root.(type) {
	case field, phrase, levels, inEnvironment:
		return term, err == nil && len(term) <= MaxQueryBytes/4
	}
	return "", false
}

// A Piece is a part of a text.
type Piece struct {
	Text   string
	Marked bool // it is a word that the query asks for, or a variable of a pattern
}

// Mark divides a message at the words that the query asks for.
func (q Query) Mark(message string) (pieces []Piece) {
	wanted := patternsOf(q.root)
	rest, from := 0, -1 // where the unmarked text and the word begin
	end := func(to int) {
		if from >= 0 && anyFits(wanted, message[from:to]) {
			if rest < from {
				pieces = append(pieces, Piece{message[rest:from], false})
			}
			pieces, rest = append(pieces, Piece{message[from:to], true}), to
		}
		from = -1
	}
	for i := 0; len(wanted) > 0 && i < len(message); {
		r, size := utf8.DecodeRuneInString(message[i:])
		switch kind := kindOf(r); {
		case kind == wholeWord:
			end(i)
			from = i
			end(i + size)
		case kind == separator:
			end(i)
		case from < 0:
			from = i
		}
		i += size
	}
	end(len(message))
	if rest < len(message) {
		pieces = append(pieces, Piece{message[rest:], false})
	}
	return pieces
}

// patternsOf are the words that a condition asks for.
func patternsOf(c condition) (words []pattern) {
	switch c := c.(type) {
	case phrase:
		return c
	case all:
		for _, part := range c {
			words = append(words, patternsOf(part)...)
		}
	case either:
		for _, part := range c {
			words = append(words, patternsOf(part)...)
		}
	}
	return words
}

func anyFits(wanted []pattern, word string) (found bool) {
	eachWord([]byte(word), func(word []byte) bool {
		for _, p := range wanted {
			found = found || p.fits(word)
		}
		return false
	})
	return found
}
