package v2

import "strings"

// A message tells errors apart in two strengths. Beside a stack trace only the
// words count that programmers write into messages: a name or a value that a
// user brought never splits a group. Without a trace the message is all there
// is: every word counts but those that are visibly values.

const (
	maxWords    = 16 // of a message beside a trace
	maxTemplate = 40 // words of a message without one
	maxWord     = 24 // bytes of the longest word of the vocabulary that is worth a look
)

// appendWords appends the words of a message's first line that programmers
// chose: common words of error messages, names of constants and of
// classes. It returns how many there are.
func appendWords(dst []byte, message string) ([]byte, int) {
	words := 0
	s := firstLine(message)
	for s != "" && words < maxWords {
		var token string
		token, s = cutToken(s)
		if strings.ContainsAny(token, `/\@`) || hasDigit(token) {
			continue
		}
		for token != "" && words < maxWords {
			var piece string
			var value bool
			piece, token, value = cutPiece(token)
			if value {
				token = ""
			}
			before := len(dst)
			if dst = appendWord(dst, piece); len(dst) > before {
				words++
			}
		}
	}
	return dst, words
}

// cutToken takes the next blank-separated token off s; text in
// quotes is a value and is passed over.
func cutToken(s string) (token, rest string) {
	s = strings.TrimLeft(s, " \t")
	if s == "" {
		return "", ""
	}
	if strings.IndexByte("\"'`", s[0]) >= 0 {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return "", s[end+2:]
		}
		return "", s[1:]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ' ' || c == '\t':
			return s[:i], s[i+1:]
		case c == '"' || c == '`' || c == '\'' && !isAlpha(s[i-1]):
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// cutPiece splits a token at punctuation; value reports that
// what follows was assigned with "=".
func cutPiece(token string) (piece, rest string, value bool) {
	i := strings.IndexAny(token, ",;:!?()[]{}<>=|\"")
	if i < 0 {
		return token, "", false
	}
	return token[:i], token[i+1:], token[i] == '='
}

// appendWord appends a piece if it is a word of the vocabulary, a
// constant ("NOT_FOUND") or a class ("FooBar").
func appendWord(dst []byte, piece string) []byte {
	piece = strings.Trim(piece, ".-'")
	if piece == "" || len(piece) > 4*maxWord {
		return dst
	}
	start := len(dst)
	dst = append(dst, ' ')
	if len(piece) <= maxWord {
		dst = appendLower(dst, piece)
		if vocabulary[string(dst[start+1:])] {
			return dst
		}
	}
	dst = dst[:start]
	switch {
	case isConstant(piece):
		return append(append(dst, ' '), piece...)
	case isClassName(piece):
		return append(append(dst, ' '), piece[strings.LastIndexByte(piece, '.')+1:]...)
	}
	return dst
}

func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isUpper(c) {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}

func isConstant(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isUpper(s[i]) && s[i] != '_' {
			return false
		}
	}
	return len(s) > 3 && s[0] != '_'
}

// isClassName recognises "FooBar" and "pkg.FooBar": the last part begins
// in upper case and has a second capital.
func isClassName(s string) bool {
	name := s[strings.LastIndexByte(s, '.')+1:]
	if name == "" || !isUpper(name[0]) {
		return false
	}
	rises := false
	for i := 1; i < len(name); i++ {
		if !isAlpha(name[i]) && name[i] != '_' && name[i] != '$' {
			return false
		}
		rises = rises || isUpper(name[i]) && isLower(name[i-1])
	}
	return rises
}

// appendTemplate appends a message's first line with "*" for
// everything that is visibly a value: quoted text, numbers, ids,
// paths, addresses, what stands after "=".
func appendTemplate(dst []byte, message string) []byte {
	s := firstLine(message)
	for n := 0; s != "" && n < maxTemplate; n++ {
		before := s
		var token string
		token, s = cutToken(s)
		if token == "" {
			if len(s) < len(before) && strings.TrimLeft(before, " \t") != "" {
				dst = appendStar(dst)
			}
			continue
		}
		dst = appendTemplateToken(dst, token)
	}
	return dst
}

func appendTemplateToken(dst []byte, token string) []byte {
	if name, value, ok := strings.Cut(token, "="); ok && name != "" && value != "" && !isValue(name) {
		return append(appendLower(append(dst, ' '), name), "=*"...)
	}
	if name, value, ok := strings.Cut(token, ":"); ok && name != "" && value != "" && !isValue(name) && isValue(value) {
		return append(appendLower(append(dst, ' '), name), ":*"...)
	}
	if isValue(token) {
		return appendStar(dst)
	}
	word := strings.Trim(token, ".,;:!?()[]{}<>|-")
	if word == "" {
		return dst
	}
	return appendLower(append(dst, ' '), word)
}

// appendStar marks a value; values side by side are one.
func appendStar(dst []byte) []byte {
	if n := len(dst); n > 1 && dst[n-1] == '*' && dst[n-2] == ' ' {
		return dst
	}
	return append(dst, " *"...)
}

// isValue recognises numbers, ids, hashes, paths, URLs, mail
// addresses and names of hosts.
func isValue(token string) bool {
	token = strings.Trim(token, ".,;:!?()[]{}<>|")
	switch {
	case hasDigit(token), strings.IndexByte(token, '@') >= 0, strings.IndexByte(token, '\\') >= 0:
		return true
	case strings.HasPrefix(token, "/"), strings.HasPrefix(token, "./"), strings.HasPrefix(token, "~/"), strings.Contains(token, "://"):
		return true
	case strings.Count(token, "/") > 1:
		return true
	}
	dot := strings.IndexByte(token, '.')
	return dot > 0 && !isClassName(token) && !strings.HasSuffix(token, "()")
}
