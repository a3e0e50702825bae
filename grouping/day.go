package grouping

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/weirlog/weir/grouping/trace"
)

// DaysKept is for how many days the numbers of a group are kept. Errors that
// happened longer before their acceptance are only in the group's count.
const DaysKept = 90

// Bounds of the values that are told apart.
const (
	MaxShares = 20  // of a tag in a day
	MaxShare  = 100 // bytes
)

// A Tag is what the errors of a group are counted by. Tags are
// stored and shown, so they are never renamed.
type Tag string

// Tags lists all of them.
var Tags = [...]Tag{"environment", "release", "service", "host"}

// A Distribution says how many errors had each value of a tag. The first MaxShares
// that come have a name of their own; the others share "".
type Distribution []Share

// A Share is that of one value.
type Share struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Add counts n errors with a value.
func (d *Distribution) Add(name string, n int64) {
	at := d.index(name)
	if at < 0 && len(*d)-min(d.index("")+1, 1) >= MaxShares {
		name = ""
		at = d.index(name)
	}
	if at < 0 {
		*d = append(*d, Share{Name: name})
		at = len(*d) - 1
	}
	(*d)[at].N += n
}

func (d *Distribution) index(name string) int {
	return slices.IndexFunc(*d, func(share Share) bool { return share.Name == name })
}

// SumOf adds up distributions: the most frequent values come
// first, and beyond MaxShares the others share "", which is the last.
func SumOf(all ...Distribution) (sum Distribution) {
	by := map[string]int64{} // bounded by the days and the values of each
	for _, of := range all {
		for _, share := range of {
			by[share.Name] += share.N
		}
	}
	rest := by[""]
	delete(by, "")
	for name, n := range by {
		sum = append(sum, Share{name, n})
	}
	slices.SortFunc(sum, func(a, b Share) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	for _, share := range sum[min(len(sum), MaxShares):] {
		rest += share.N
	}
	sum = sum[:min(len(sum), MaxShares)]
	if rest > 0 {
		sum = append(sum, Share{N: rest})
	}
	return sum
}

// HourCounts are numbers of errors by the hours of a day (UTC).
type HourCounts [24]int64

// Sum is that of all hours.
func (h *HourCounts) Sum() (n int64) {
	for _, of := range h {
		n += of
	}
	return n
}

// A Day is what is counted of a group's errors on one day (UTC), by the
// times of the entries.
type Day struct {
	Number int64 // since 1970
	Hours  HourCounts
	Tags   [len(Tags)]Distribution // those of Tags
	Fresh  uint32                  // a bit for each hour that has errors which came in it or in the next one: others tell nothing of the present
	Users  []uint64                // hashes of the users whom the errors affected, some more than once; bounded by the errors of a transaction
}

// Merge adds other to d.
func (d *Day) Merge(other *Day) {
	for hour, n := range other.Hours {
		d.Hours[hour] += n
	}
	for i := range other.Tags {
		for _, v := range other.Tags[i] {
			d.Tags[i].Add(v.Name, v.N)
		}
	}
	d.Fresh |= other.Fresh
	d.Users = append(d.Users, other.Users...)
}

// HourOf is the number of an instant's hour since 1970.
func HourOf(at time.Time) int64 { return at.Unix() / int64(time.Hour/time.Second) }

// HourAt is the beginning of an hour since 1970.
func HourAt(number int64) time.Time { return time.Unix(number*int64(time.Hour/time.Second), 0).UTC() }

// HoursOfDay is how many hours a day (UTC) has.
const HoursOfDay = int64(len(HourCounts{}))

// Days are those of a group: mostly one, and at most DaysKept and those that
// a transaction spans.
type Days []*Day

// Of returns a day by its number, which it adds where it is missing.
func (d *Days) Of(number int64) *Day {
	for _, day := range *d {
		if day.Number == number {
			return day
		}
	}
	day := &Day{Number: number}
	*d = append(*d, day)
	return day
}

// Sorted are the days, the earliest first.
func (d Days) Sorted() Days {
	slices.SortFunc(d, func(a, b *Day) int { return cmp.Compare(a.Number, b.Number) })
	return d
}

func (d *Days) add(o Occurrence, users []uint64) {
	if o.Accepted.Sub(o.At) >= DaysKept*24*time.Hour || o.At.Unix() < 0 { // days are counted from 1970 on
		return
	}
	hour := HourOf(o.At)
	day := d.Of(hour / HoursOfDay)
	day.Hours[hour%HoursOfDay]++
	if HourOf(o.Accepted)-hour <= 1 {
		day.Fresh |= 1 << (hour % HoursOfDay)
	}
	for i, name := range [len(Tags)]string{o.Environment, o.Release, o.Service, o.Host} {
		if name != "" {
			day.Tags[i].Add(trace.Clip(name, MaxShare), 1)
		}
	}
	day.Users = append(day.Users, users...)
}

// usersOf is the hash of the user whom an error affected, if it names one.
func usersOf(o Occurrence) []uint64 {
	if o.User == "" {
		return nil
	}
	return []uint64{userHash(o.Project, o.User)}
}

// userHash stands for a user, whose id is kept nowhere. It differs between
// projects, so that nobody can tell by it what one user does in two.
func userHash(project, user string) uint64 {
	sum := sha256.Sum256([]byte(project + "\n" + user))
	return binary.BigEndian.Uint64(sum[:8])
}
