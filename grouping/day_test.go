package grouping

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// The numbers of days are those of the errors, however these
// are split into counts: nothing is counted twice, or lost.
func TestDaysAddUp(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		whole, parts := Days{}, []Days{{}, {}, {}}
		hours, releases, users := map[int64]int64{}, map[string]int64{}, map[string]bool{}
		for range random.IntN(500) {
			o := Occurrence{Project: "shop", Accepted: noon, At: noon.Add(-time.Duration(random.IntN(100*24)) * time.Hour),
				Release: fmt.Sprint(random.IntN(40)), User: fmt.Sprint(random.IntN(60))}
			whole.add(o, usersOf(o))
			parts[random.IntN(len(parts))].add(o, usersOf(o))
			if noon.Sub(o.At) < DaysKept*24*time.Hour {
				hours[HourOf(o.At)]++
				releases[o.Release]++
				users[o.User] = true
			}
		}
		merged := Days{}
		for _, part := range parts {
			for _, day := range part {
				merged.Of(day.Number).Merge(day)
			}
		}
		for name, days := range map[string]Days{"whole": whole, "merged": merged} {
			found, hashes, tags := map[int64]int64{}, map[uint64]bool{}, []Distribution{}
			for _, day := range days {
				for hour, n := range day.Hours {
					if n > 0 {
						found[day.Number*HoursOfDay+int64(hour)] = n
					}
				}
				for _, hash := range day.Users {
					hashes[hash] = true
				}
				tags = append(tags, day.Tags[1])
			}
			var sum int64
			for _, share := range SumOf(tags...) {
				sum += share.N
				if share.Name != "" && share.N > releases[share.Name] {
					t.Errorf("seed %d, %s: %d errors of release %s, of %d", seed, name, share.N, share.Name, releases[share.Name])
				}
			}
			if !maps.Equal(found, hours) || len(hashes) != len(users) || sum != sumOf(hours) {
				t.Errorf("seed %d, %s: hours %v, want %v; %d users of %d; %d errors with a release of %d", seed, name, found, hours, len(hashes), len(users), sum, sumOf(hours))
			}
		}
	}
}

func sumOf(of map[int64]int64) (sum int64) {
	for _, n := range of {
		sum += n
	}
	return sum
}

// The first values of a day have a name. What is later shares one, and is last of a sum.
func TestDistribution(t *testing.T) {
	var d Distribution
	for i := range 30 {
		d.Add(fmt.Sprint(i), int64(1+i))
		d.Add(fmt.Sprint(i), 1)
	}
	if len(d) != MaxShares+1 || d[0] != (Share{"0", 2}) || d[MaxShares].Name != "" {
		t.Errorf("%+v", d)
	}
	sum := SumOf(d, Distribution{{"30", 1000}, {"", 1}})
	if len(sum) != MaxShares+1 || sum[0] != (Share{"30", 1000}) || sum[MaxShares] != (Share{"", d[MaxShares].N + 1 + 2}) {
		t.Errorf("%+v", sum)
	}
}

// Only what happened in the hour of its acceptance, or the one before, tells of the present;
// what is older than the days that are kept is not counted.
func TestFreshHours(t *testing.T) {
	days := Days{}
	for _, ago := range []time.Duration{0, time.Hour, 2 * time.Hour, DaysKept*24*time.Hour - 1, DaysKept * 24 * time.Hour} {
		for _, project := range []string{"shop", "cafe"} {
			o := Occurrence{Accepted: noon, At: noon.Add(-ago), User: "ada", Project: project}
			days.add(o, usersOf(o))
		}
	}
	today := days.Of(HourOf(noon) / HoursOfDay)
	if len(days) != 2 || today.Fresh != 1<<12|1<<11 || today.Hours[10] != 2 || len(slices.Compact(slices.Sorted(slices.Values(today.Users)))) != 2 {
		t.Errorf("%d days, %+v", len(days), today)
	}
}
