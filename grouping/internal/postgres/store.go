package postgres

import (
	"embed"
	"strconv"
	"strings"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is the schema of the tables of this module.
const Schema = "grouping"

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are all tables of the module's schema.
func Migrations() []pg.MigrationSet {
	return []pg.MigrationSet{
		pg.Partitions(), bus.Migrations(), inbox.Migrations(), outbox.Migrations(), cursorkey.Migrations(), erasure.Migrations(),
		{Name: "grouping", FS: migrations, Rights: rights},
	}
}

// storable replaces what JSON allows and Postgres
// can't store in text: U+0000 and invalid UTF-8.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// array writes words as a Postgres array literal: arrays
// of different lengths are sent as one array of text.
func array(words []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, word := range words {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(storable(word)))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

// numbers writes numbers as array does words.
func numbers(of []int32) string {
	literal := []byte{'{'}
	for i, n := range of {
		if i > 0 {
			literal = append(literal, ',')
		}
		literal = strconv.AppendInt(literal, int64(n), 10)
	}
	return string(append(literal, '}'))
}
