package grouping

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"time"
)

// MaxCrowd is how many users of a group within a span are counted exactly. Of
// more, a random half, quarter and so on is kept: the standard error is then at most 6.3 %.
const MaxCrowd = 512

// A UserCount estimates how many users the errors of a group have affected of
// late, in at most 3 KB: of each user who is kept there are half of a hash,
// the age in spans, and how many others the user stands for.
type UserCount struct {
	Users  []byte `json:"users,omitempty"` // countedUser each, sorted by hash
	Newest int64  `json:"newest,omitempty"`
	Level  int    `json:"level,omitempty"` // a user is kept whose hash ends in so many zeros
	Told   bool   `json:"told,omitempty"`
}

// IsZero is for nobody.
func (c UserCount) IsZero() bool { return len(c.Users) == 0 && !c.Told }

type countedUser struct {
	hash  uint32
	age   uint8 // spans before the newest
	level uint8 // the user stands for 1<<level
}

const (
	crowdBytes = 6
	// maxCrowdLevel is enough for billions of users.
	maxCrowdLevel = 24
	// sparseCrowd is the part of MaxCrowd below which more of the next users are kept.
	sparseCrowd = 4
)

func (c *UserCount) read() []countedUser {
	users := make([]countedUser, 0, MaxCrowd+1)
	for b := c.Users; len(b) >= crowdBytes; b = b[crowdBytes:] {
		users = append(users, countedUser{binary.BigEndian.Uint32(b), b[4], b[5]})
	}
	return users
}

func (c *UserCount) write(users []countedUser) {
	c.Users = make([]byte, 0, len(users)*crowdBytes)
	for _, u := range users {
		c.Users = append(binary.BigEndian.AppendUint32(c.Users, u.hash), u.age, u.level)
	}
}

// add adds users who were affected at an instant, and reports whether they
// are enough for the first time since they were fewer.
func (c *UserCount) add(at time.Time, hashes []uint64, enough int64, per time.Duration) (tells bool) {
	users := c.moveTo(spanOf(at.UnixMicro(), per), c.read())
	if sizeOf(users) < enough {
		c.Told = false
	}
	age := c.Newest - spanOf(at.UnixMicro(), per)
	for _, hash := range hashes {
		if age < spansPer {
			users = c.keep(users, countedUser{uint32(hash), uint8(age), uint8(c.Level)}) //nolint:gosec // half of it; both are small
		}
	}
	tells = !c.Told && sizeOf(users) >= enough
	c.Told = c.Told || tells
	c.write(users)
	return tells
}

// moveTo ages users, and forgets those who are too old.
func (c *UserCount) moveTo(span int64, users []countedUser) []countedUser {
	if len(users) == 0 {
		c.Newest, c.Level = span, 0
		return users
	}
	moved := min(max(0, span-c.Newest), spansPer)
	c.Newest = max(c.Newest, span)
	kept := users[:0]
	for _, u := range users {
		if u.age += uint8(moved); u.age < spansPer { //nolint:gosec // at most spansPer
			kept = append(kept, u)
		}
	}
	if moved > 0 && len(kept) < MaxCrowd/sparseCrowd {
		c.Level = max(0, c.Level-1)
	}
	return kept
}

// keep keeps a user, with the newest age. Where there are too many, half of
// them stand for all.
func (c *UserCount) keep(users []countedUser, u countedUser) []countedUser {
	if bits.TrailingZeros32(u.hash) < c.Level {
		return users
	}
	i, known := slices.BinarySearchFunc(users, u, func(a, b countedUser) int { return cmp.Compare(a.hash, b.hash) })
	if known {
		users[i].age, users[i].level = min(users[i].age, u.age), u.level
		return users
	}
	users = slices.Insert(users, i, u)
	for len(users) > MaxCrowd && c.Level < maxCrowdLevel {
		c.Level++
		users = slices.DeleteFunc(users, func(u countedUser) bool { return bits.TrailingZeros32(u.hash) < c.Level })
		for i := range users {
			users[i].level = max(users[i].level, uint8(c.Level)) //nolint:gosec // at most maxCrowdLevel
		}
	}
	return users
}

// sizeOf is how many users those stand for.
func sizeOf(users []countedUser) (n int64) {
	for _, u := range users {
		n += 1 << u.level
	}
	return n
}
