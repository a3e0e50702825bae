package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// usersPrecision is that of the sketches of users: 2 KB for any number of them. UsersError
// is the standard error then, in percent; up to UsersExact are counted exactly.
const (
	usersPrecision = 11
	UsersError     = 2.3
	UsersExact     = 500
)

// dayRow is a day of a group, with what a transaction adds to it.
type dayRow struct {
	*change
	day   *grouping.Day
	users []byte // the sketch
}

// saveDays adds the numbers of changes to the days of their groups, whose rows are
// locked. Then each change has the whole days that it changed.
func saveDays(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var rows []*dayRow
	for _, ch := range changes {
		for _, day := range ch.Days.Sorted() {
			rows = append(rows, &dayRow{change: ch, day: day})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := mergeDays(ctx, tx, rows); err != nil {
		return err
	}
	var c dayColumns
	for _, r := range rows {
		if err := c.add(r); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO group_days (organization, error_group, day, counted, users)
		SELECT organization, error_group, day, counted::json, users
		  FROM unnest($1::text[], $2::text[], $3::date[], $4::text[], $5::bytea[]) WITH ORDINALITY AS k (organization, error_group, day, counted, users, n)
		 ORDER BY n
		ON CONFLICT (organization, error_group, day) DO UPDATE SET counted = excluded.counted, users = excluded.users`,
		c.organizations, c.groups, c.days, c.counted, c.users)
	return err
}

// mergeDays adds what is stored of the days to them. New groups have none.
func mergeDays(ctx context.Context, tx pgx.Tx, rows []*dayRow) error {
	var organizations, groups []string
	var days []time.Time
	var numbers []int
	for i, r := range rows {
		if !r.created {
			organizations, groups, days = append(organizations, r.Organization), append(groups, r.group), append(days, dayAt(r.day.Number))
			numbers = append(numbers, i)
		}
	}
	stored := make([]storedDay, len(rows))
	if len(numbers) > 0 {
		found, err := tx.Query(ctx, `
			SELECT n, counted, users FROM unnest($1::text[], $2::text[], $3::date[], $4::int[]) AS k (organization, error_group, day, n)
			  JOIN group_days USING (organization, error_group, day)`, organizations, groups, days, numbers)
		if err != nil {
			return err
		}
		var n int
		var s storedDay
		_, err = pgx.ForEachRow(found, []any{&n, &s.counted, &s.users}, func() error {
			stored[n], s = s, storedDay{}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, r := range rows {
		if err := r.merge(stored[i]); err != nil {
			return fmt.Errorf("cannot add to %s of group %q: %w", dayAt(r.day.Number).Format(time.DateOnly), r.group, err)
		}
	}
	return nil
}

// storedDay is a day as it is stored.
type storedDay struct {
	counted countedDay
	users   []byte // a sketch; nil: none was named
}

// countedDay is all of a day but its users.
type countedDay struct {
	Hours map[int64]int64                        `json:"hours"`          // of the day; bounded by 24
	Tags  map[grouping.Tag]grouping.Distribution `json:"tags,omitempty"` // bounded by grouping.Tags
}

func countedDayOf(day *grouping.Day) countedDay {
	c := countedDay{Hours: map[int64]int64{}, Tags: map[grouping.Tag]grouping.Distribution{}}
	for hour, n := range day.Hours {
		if n > 0 {
			c.Hours[int64(hour)] = n
		}
	}
	for i, of := range day.Tags {
		if len(of) > 0 {
			c.Tags[grouping.Tags[i]] = of
		}
	}
	return c
}

func (c countedDay) day() *grouping.Day {
	day := &grouping.Day{}
	for hour, n := range c.Hours {
		day.Hours[hour] = n
	}
	for i, tag := range grouping.Tags {
		day.Tags[i] = c.Tags[tag]
	}
	return day
}

func (r *dayRow) merge(stored storedDay) (err error) {
	for _, tag := range r.day.Tags {
		for i := range tag {
			tag[i].Name = storable(tag[i].Name)
		}
	}
	whole := stored.counted.day()
	whole.Number = r.day.Number
	whole.Merge(r.day)
	r.users = stored.users
	if len(r.day.Users) > 0 {
		r.users, err = addUsers(stored.users, r.day.Users)
	}
	*r.day = *whole
	return err
}

// addUsers adds users to a sketch; nil is an empty one.
func addUsers(sketch []byte, users []uint64) ([]byte, error) {
	of, err := readUsers(sketch)
	if err != nil {
		return nil, err
	}
	for _, user := range users {
		of.InsertHash(user)
	}
	of.Estimate() // makes it compact
	return of.MarshalBinary()
}

func readUsers(sketch []byte) (*hyperloglog.Sketch, error) {
	of, err := hyperloglog.NewSketch(usersPrecision, true)
	if err == nil && sketch != nil {
		err = of.UnmarshalBinary(sketch)
	}
	return of, err
}

// dayColumns are days as the arrays of a statement.
type dayColumns struct {
	organizations, groups, counted []string
	days                           []time.Time
	users                          [][]byte
}

func (c *dayColumns) add(r *dayRow) error {
	text, err := json.Marshal(countedDayOf(r.day))
	if err != nil {
		return fmt.Errorf("cannot encode the numbers of group %q: %w", r.group, err)
	}
	c.organizations, c.groups, c.days = append(c.organizations, r.Organization), append(c.groups, r.group), append(c.days, dayAt(r.day.Number))
	c.counted, c.users = append(c.counted, string(text)), append(c.users, r.users)
	return nil
}

// dayAt is a day by its number since 1970.
func dayAt(number int64) time.Time { return grouping.HourAt(number * grouping.HoursOfDay) }
