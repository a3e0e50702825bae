package ingest

import (
	"github.com/weirlog/weir/shared/contract/entryfield"
)

// Bounds of the values in a filter, by their folded bytes, and by the
// values of one entry. A block with an entry of more may hold any value.
const (
	maxValueBytes = 64
	maxValues     = 64
)

// A content collects, of the entries of a block, the words of messages and
// the values of all other fields, those of frequent fields as columns.
type content struct {
	words     wordSet
	columns   columnSet
	path      []byte   // of the value that is read
	mask      []byte   // of the message
	variables [][]byte // its variable tokens
	word      [maxWordBytes]byte
	left      int  // how many more values of the entry are in the filter; negative: there were too many
	lacks     bool // an entry had too many
}

// add reads an entry.
func (c *content) add(entry []byte) {
	c.left = maxValues
	c.columns.begin()
	walk(entry, func(name, rest []byte) (end int, stopped bool) {
		c.path = append(c.path[:0], decodedString(name)...)
		switch string(c.path) {
		case entryfield.Timestamp, entryfield.Level, entryfield.Environment:
			return 0, false
		case entryfield.Message:
			end = valueEnd(rest, 0)
			c.addMessage(rest[:end])
			return end, false
		}
		return c.value(rest), false
	})
	c.lacks = c.lacks || c.left < 0
}

// addMessage adds the words of a message. All but those of its variables are
// there already where its mask is.
func (c *content) addMessage(value []byte) {
	if value[0] != '"' {
		return
	}
	message, masks := decodedString(value), &c.columns.masks
	if masks.codes == nil {
		c.addWords(message)
		return
	}
	var rest []byte
	c.variables = c.variables[:0]
	c.mask, rest = splitMessage(c.mask[:0], message, func(token []byte) { c.variables = append(c.variables, token) })
	if len(c.mask) == 0 {
		return
	}
	if masks.add(c.columns.entries, c.mask) {
		c.addWords(rest)
	} else {
		c.addWords(message)
	}
	for _, token := range c.variables {
		eachWordIn(&c.word, token, func(word []byte) bool {
			c.words.insert(hashWord(word))
			c.columns.addVariable(word)
			return true
		})
	}
}

func (c *content) addWords(text []byte) {
	eachWordIn(&c.word, text, func(word []byte) bool {
		c.words.insert(hashWord(word))
		return true
	})
}

// value reads the value at the path, and returns its end.
func (c *content) value(rest []byte) (end int) {
	switch rest[0] {
	case '{':
		c.columns.object(c.path)
		return c.object(rest)
	case '[':
		end = valueEnd(rest, 0)
		c.columns.array(c.path)
		c.array(rest[:end])
		return end
	}
	end = scalarEnd(rest, 0)
	if c.left--; !c.columns.add(c.path, rest[:end]) && c.left >= 0 {
		c.addValue(rest[:end])
	}
	return end
}

// object reads all but the frames of an error.
func (c *content) object(object []byte) (end int) {
	prefix := len(c.path)
	last, _ := walk(object, func(name, rest []byte) (end int, stopped bool) {
		c.path = append(append(c.path[:prefix], '.'), decodedString(name)...)
		if string(c.path) == entryfield.Error+"."+entryfield.ErrorStackTrace {
			return 0, false
		}
		return c.value(rest), false
	})
	c.path = c.path[:prefix]
	return min(last+1, len(object))
}

func (c *content) array(array []byte) {
	for i := 0; i < len(array) && c.left >= 0; {
		switch array[i] {
		case '{', '}', '[', ']', ',', ':':
			i++
			continue
		}
		end := scalarEnd(array, i)
		if end == len(array) || array[end] != ':' { // it is no name
			if c.left--; c.left >= 0 {
				c.addValue(array[i:end])
			}
		}
		i = end
	}
}

func (c *content) addValue(value []byte) {
	var buffer [2 * maxValueBytes]byte
	if len(value) > 6*maxValueBytes+2 { // too long even if it is all escapes
		return
	}
	if folded := appendText(buffer[:0], value); len(folded) <= maxValueBytes {
		c.words.insert(hashValue(folded))
	}
}
