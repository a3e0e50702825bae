package ingest

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A mask is a message with its variable tokens replaced by their kind, a
// byte from 1 on; white space and control characters become one space. It
// depends on the message alone, so masks can be counted anywhere and added.
// Blocks store masks: a change of the rules needs another columnsVersion.
//
// A token is a run of letters and digits, with what holds names together
// inside (web-1, com.acme.Cart), and consists of whole words of eachWord.
const (
	variable = 1 + iota // that differs among masks which were joined
	numberVariable
	timeVariable
	addressVariable
	emailVariable
	idVariable
	variables // how many kinds there are, and one
)

var variableNames = [variables]string{
	variable: "<*>", numberVariable: "<num>", timeVariable: "<time>", addressVariable: "<ip>", emailVariable: "<email>", idVariable: "<id>",
}

const (
	maxMask      = 240  // bytes of a mask, besides the sign that it is cut
	maxMasked    = 4096 // bytes of a message that are looked at
	maxConstant  = 96   // bytes of a token that may be a name
	longestUnit  = 3    // letters behind a number: 12ms
	cutOff       = "…"
	leastColons  = 2 // of an address with letters
	digitsBehind = 3 // a comma in a number
)

// appendMask appends the mask of a message.
func appendMask(dst, message []byte) []byte {
	dst, _ = splitMessage(dst, message, func([]byte) {})
	return dst
}

// splitMessage appends the mask of a message, calls each with its variable
// tokens, and returns what the mask says nothing about.
func splitMessage(dst, message []byte, each func(token []byte)) (mask, rest []byte) {
	begun, text := len(dst), message[:min(len(message), maxMasked)]
	for len(text) < len(message) && len(text) > 0 && !utf8.RuneStart(message[len(text)]) { // no part of a letter
		text = text[:len(text)-1]
	}
	for i := 0; i < len(text); {
		end, kind := maskedToken(text, i)
		switch {
		case kind == space:
			if i = end; len(dst) == begun || dst[len(dst)-1] == ' ' {
				continue
			}
		case end == len(text) && len(text) < len(message), kind == constant && len(dst)-begun+end-i > maxMask, len(dst)-begun >= maxMask:
			return append(dst, cutOff...), message[i:] // a part of a token is no word of the message
		}
		switch kind {
		case constant:
			dst = append(dst, text[i:end]...)
		case space:
			dst = append(dst, ' ')
		default:
			dst = append(dst, byte(kind))
			each(text[i:end])
		}
		i = end
	}
	if len(text) < len(message) {
		return append(dst, cutOff...), message[len(text):]
	}
	if len(dst) > begun && dst[len(dst)-1] == ' ' {
		dst = dst[:len(dst)-1]
	}
	return dst, nil
}

// Kinds of what is no variable.
const (
	constant = -1 // a token or a separator
	space    = -2
)

// maskedToken is the end of what begins at i, and the kind of variable that it is.
func maskedToken(text []byte, i int) (end, kind int) {
	switch c := text[i]; {
	case c <= ' ' || c == 0x7f:
		return i + 1, space
	case isLetter(c):
		if end = lettersEnd(text, i); end-i <= maxConstant && (end == len(text) || !holdsTogether[text[end]]) {
			return end, constant
		}
	case (c == '-' || c == '+') && i+1 < len(text) && isDigit(text[i+1]) && (i == 0 || strings.IndexByte(" =(:[,", text[i-1]) >= 0):
		return maskedToken(text, i+1) // a sign
	}
	if end = colonsEnd(text, i); end > i {
		return end, addressVariable
	}
	end, digits := tokenEnd(text, i)
	token := text[i:end]
	switch {
	case digits:
		return end, kindOfVariable(token)
	case len(token) > maxConstant:
		return end, idVariable
	case isEmail(token):
		return end, emailVariable
	}
	return end, constant
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func lettersEnd(text []byte, i int) int {
	for i < len(text) && isLetter(text[i]) {
		i++
	}
	return i
}

// holdsTogether has what may go on a token behind letters, or make these an address.
var holdsTogether = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= utf8.RuneSelf || strings.IndexByte("0123456789.-_@$:,", byte(c)) >= 0
	}
	return set
}()

// tokenEnd is the end of the token at i, or of the separator there, and
// whether it has digits.
func tokenEnd(text []byte, i int) (end int, digits bool) {
	for begun := i; ; {
		var kind kind
		c, size := text[i], 1
		if c < utf8.RuneSelf {
			if kind = separator; ascii[c] != 0 {
				kind = partOfWord
				digits = digits || isDigit(c)
			}
		} else {
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			kind = kindOf(r)
			digits = digits || unicode.IsDigit(r)
		}
		switch {
		case kind == partOfWord, i > begun && kind == separator && connects(text, begun, i):
			i += size
		case i == begun:
			return i + size, digits
		default:
			return i, digits
		}
		if i == len(text) {
			return i, digits
		}
	}
}

// connects reports whether the character at i holds the token together that has begun.
func connects(text []byte, begun, i int) bool {
	if i+1 >= len(text) {
		return false
	}
	next := text[i+1]
	switch text[i] {
	case '.', '-', '_', '@', '$':
		return ascii[next] != 0 || next >= utf8.RuneSelf && isWordAt(text[i+1:])
	case ':':
		return isDigit(next) && i-begun <= longestTime && len(bytes.Trim(text[begun:i], "0123456789.:-T")) == 0
	case ',':
		end := i + 1
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		return isDigit(text[i-1]) && end == i+1+digitsBehind
	}
	return false
}

func isWordAt(text []byte) bool { return kindOfFirst(text) == partOfWord }

func kindOfFirst(text []byte) kind {
	r, _ := utf8.DecodeRune(text)
	return kindOf(r)
}

// How much may be a time or an address: each colon looks at all before it, or behind it.
const (
	longestTime    = 40
	longestAddress = 64
)

// colonsEnd is the end of an address such as fe80::1 or 0a:00:27:4e:5f:61 at i; i: there is none.
func colonsEnd(text []byte, i int) int {
	colons, end, digits, more := 0, i, false, false
loop:
	for ; end < min(len(text), i+longestAddress); end++ {
		switch c := text[end]; {
		case isDigit(c):
			digits = true
		case c == ':' && end > i:
			colons++
			more = more || text[end-1] == ':'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			more = true
		default:
			break loop
		}
	}
	if !digits || !more || colons < leastColons || text[end-1] == ':' || end < len(text) && (ascii[text[end]] != 0 || text[end] >= utf8.RuneSelf) {
		return i
	}
	return end
}

// kindOfVariable is the kind of a token with digits.
func kindOfVariable(token []byte) int {
	behind := bytes.TrimLeft(token, "0123456789.,:")
	colons, dots := bytes.IndexByte(token, ':') >= 0, bytes.Count(token, []byte("."))
	switch {
	case isDate(token):
		return timeVariable
	case len(behind) == 0 && dots == 3:
		return addressVariable
	case len(behind) == 0 && colons:
		return timeVariable
	case isDigit(token[0]) && len(behind) <= longestUnit && token[min(1, len(token)-1)] != 'x' && !bytes.ContainsAny(behind, ".-_@$"):
		return numberVariable
	case isEmail(token):
		return emailVariable
	}
	return idVariable
}

func isDate(token []byte) bool {
	const to = len("2026-11-21")
	return len(token) >= to && token[4] == '-' && token[7] == '-' && len(bytes.Trim(token[:to], "0123456789-")) == 0
}

func isEmail(token []byte) bool {
	at := bytes.IndexByte(token, '@')
	return at > 0 && bytes.IndexByte(token[at:], '.') > 0
}
