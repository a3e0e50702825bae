package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// A Screen is where a command writes: a terminal, or a file or pipe in its place.
type Screen struct {
	io.Writer

	Width int  // in columns; 0: no terminal, so that nothing is cut
	Color bool // whether levels are coloured
}

// Of looks whether a writer is a terminal. NO_COLOR leaves colours out.
func Of(w io.Writer) Screen {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Screen{Writer: w}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return Screen{Writer: w, Width: width, Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Colours by the words of levels, as SGR parameters. Bounded by these words.
var colors = map[string]string{"fatal": "31;1", "error": "31", "warn": "33", "debug": "2"}

// Level colours text by a level. The text has to name it: colour is never alone.
func (s Screen) Level(level, text string) string {
	color := colors[strings.ToLower(level)]
	if !s.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// JSON writes a value on one line, otherwise byte for byte. On a terminal
// what it would obey or hide is escaped, which is the same JSON.
func (s Screen) JSON(value []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return err
	}
	text := line.String()
	if s.Width > 0 {
		var escaped strings.Builder
		for _, r := range text {
			if unicode.IsPrint(r) {
				escaped.WriteRune(r)
				continue
			}
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&escaped, `\u%04x`, unit)
			}
		}
		text = escaped.String()
	}
	_, err := io.WriteString(s, text+"\n")
	return err
}

// Bounds of cells on a terminal, in columns.
const (
	widestCell   = 36 // an id is whole
	narrowestEnd = 10 // of the last column, whatever the terminal
)

// Table writes a head and rows of foreign text. On a terminal long cells
// are cut, and the last ones where the line ends. Column level is coloured.
func (s Screen) Table(head []string, rows [][]string) error {
	level, widths := slices.Index(head, "LEVEL"), make([]int, len(head))
	table := append([][]string{head}, rows...)
	for i, row := range table {
		table[i] = slices.Clone(row)
		for j := range row {
			table[i][j] = Line(row[j])
			if s.Width > 0 && j < len(row)-1 {
				table[i][j] = cut(table[i][j], widestCell)
			}
			widths[j] = max(widths[j], columns(table[i][j]))
		}
	}
	left := s.Width
	for _, width := range widths[:len(head)-1] {
		left -= width + 2
	}
	var text strings.Builder
	for i, row := range table {
		for j, cell := range row[:len(row)-1] {
			padding := strings.Repeat(" ", widths[j]-columns(cell)+2)
			if j == level && i > 0 {
				cell = s.Level(cell, cell)
			}
			text.WriteString(cell + padding)
		}
		last := row[len(row)-1]
		if s.Width > 0 {
			last = cut(last, max(left, narrowestEnd))
		}
		text.WriteString(last + "\n")
	}
	_, err := io.WriteString(s, text.String())
	return err
}

// cut shortens a line to so many columns.
func cut(s string, most int) string {
	if columns(s) <= most {
		return s
	}
	used := 1 // for …
	for i, r := range s {
		if used += columnsOf(r); used > most {
			return s[:i] + "…"
		}
	}
	return s
}

func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// columnsOf returns how many columns most terminals give a character.
func columnsOf(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x1f300 && r < 0x20000:
		return 2
	}
	return 1
}
