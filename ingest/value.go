package ingest

import "encoding/binary"

// value checks the JSON value at i and returns the offset behind it. depth is
// its level if it is an array or an object.
func (p *Parser) value(i, depth int) int {
	switch p.text[i] {
	case '"':
		return p.str(i)
	case '{':
		return p.object(i, depth)
	case '[':
		return p.array(i, depth)
	case 't':
		return p.word(i, "true")
	case 'n':
		return p.word(i, "null")
	case 'f':
		return p.word(i, "false")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number(i)
	}
	return p.fail(i, "a value is missing or malformed")
}

// object checks an object of which nothing but its JSON matters.
func (p *Parser) object(i, depth int) int {
	if depth > MaxDepth {
		return p.tooDeep(i)
	}
	i = p.skip(i + 1)
	if p.text[i] == '}' {
		return i + 1
	}
	for {
		if i = p.name(i); i < 0 {
			return i
		}
		if i = p.value(i, depth+1); i < 0 {
			return i
		}
		i = p.skip(i)
		if p.text[i] == '}' {
			return i + 1
		}
		if i = p.comma(i, "an object"); i < 0 {
			return i
		}
	}
}

// name checks the name of a member and its colon, and returns
// the offset of the value.
func (p *Parser) name(i int) int {
	if i = p.quotedName(i); i < 0 {
		return i
	}
	return p.colon(i)
}

func (p *Parser) quotedName(i int) int {
	if p.text[i] != '"' {
		return p.fail(i, "a name in double quotes is missing")
	}
	return p.str(i)
}

func (p *Parser) colon(i int) int {
	if i = p.skip(i); p.text[i] != ':' {
		return p.fail(i, "a colon is missing after a name")
	}
	return p.skip(i + 1)
}

// array checks an array of which nothing but its JSON matters.
func (p *Parser) array(i, depth int) int {
	if depth > MaxDepth {
		return p.tooDeep(i)
	}
	i = p.skip(i + 1)
	if p.text[i] == ']' {
		return i + 1
	}
	return p.elements(i, depth)
}

// elements checks an array from the element at i on.
func (p *Parser) elements(i, depth int) int {
	for {
		if i = p.value(i, depth+1); i < 0 {
			return i
		}
		i = p.skip(i)
		if p.text[i] == ']' {
			return i + 1
		}
		if i = p.comma(i, "an array"); i < 0 {
			return i
		}
	}
}

// comma checks the comma at i and returns the offset of what follows it.
func (p *Parser) comma(i int, where string) int {
	if p.text[i] != ',' {
		return p.fail(i, "a comma is missing in "+where+", or its end")
	}
	return p.skip(i + 1)
}

// word checks one of the three literal names.
func (p *Parser) word(i int, want string) int {
	after := i + len(want)
	if after > p.size || string(p.text[i:after]) != want {
		return p.fail(i, "a value is missing or malformed")
	}
	return after
}

// isNull reports whether the value at i begins like null.
func (p *Parser) isNull(i int) bool {
	return binary.LittleEndian.Uint32(p.text[i:]) == 'n'|'u'<<8|'l'<<16|'l'<<24
}

// number checks a number: -? int frac? exp?.
func (p *Parser) number(i int) int {
	if p.text[i] == '-' {
		i++
	}
	switch {
	case p.text[i] == '0':
		i++
	case !isDigit(p.text[i]):
		return p.fail(i, "a number has no digits")
	default:
		i = p.digits(i)
	}
	if p.text[i] == '.' {
		if i++; !isDigit(p.text[i]) {
			return p.fail(i, "a number has no digits after its point")
		}
		i = p.digits(i)
	}
	if p.text[i]|0x20 != 'e' {
		return i
	}
	if i++; p.text[i] == '+' || p.text[i] == '-' {
		i++
	}
	if !isDigit(p.text[i]) {
		return p.fail(i, "a number has no digits in its exponent")
	}
	return p.digits(i)
}

func (p *Parser) digits(i int) int {
	for isDigit(p.text[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skip returns the offset of the next byte that is no white space.
func (p *Parser) skip(i int) int {
	if p.text[i] > ' ' {
		return i
	}
	return p.space(i)
}

// space passes white space, and leaves it out of the entry that is being kept.
func (p *Parser) space(i int) int {
	start := i
	for c := p.text[i]; c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = p.text[i] {
		i++
	}
	if p.keeping && i > start {
		p.keep(start)
		p.run = i
	}
	return i
}

// kind names the kind of the value that begins at i, for a person.
func (p *Parser) kind(i int) string {
	switch p.text[i] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

func (p *Parser) tooDeep(i int) int {
	return p.fail(i, "arrays and objects nest more than 128 levels deep")
}
