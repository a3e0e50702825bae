package grouping

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A spike needs many errors, more than busy hours and this
// time of the day had. What was before may be nothing.
func TestFindSpike(t *testing.T) {
	hours := func(n func(hour int) int64) []int64 {
		before := make([]int64, SpikeHours)
		for i := range before {
			before[i] = n(i)
		}
		return before
	}
	constant := func(n int64) func(int) int64 { return func(int) int64 { return n } }
	nightly := func(hour int) int64 { // the hour that is judged is at 24 o'clock
		if hour%24 == 3 {
			return 100
		}
		return 1
	}
	once := func(hour int) int64 { return map[bool]int64{hour == 30: 500}[true] }
	for _, test := range []struct {
		name     string
		before   func(int) int64
		count    int64
		spikes   bool
		expected float64
	}{
		{"nothing before", constant(0), 20, true, 0},
		{"too few", constant(0), 19, false, 0},
		{"three times as many", constant(10), 30, false, 0},
		{"more than that", constant(10), 31, true, 10},
		{"beside a nightly job", nightly, 100, true, 5.1},
		{"at its time", func(hour int) int64 { return nightly((hour + 3) % 24) }, 300, false, 0},
		{"an hour from its time", func(hour int) int64 { return nightly((hour + 4) % 24) }, 300, false, 0},
		{"after another spike", once, 40, true, 0},
	} {
		found, spikes := FindSpike(noon, test.count, hours(test.before))
		if spikes != test.spikes || spikes && (found.Count != test.count || found.Expected != test.expected || !found.Hour.Equal(noon)) {
			t.Errorf("%s: %t, %+v", test.name, spikes, found)
		}
	}
}

// A spike is decided once, and not about what is ignored.
func TestSpiked(t *testing.T) {
	found := Spike{Hour: noon, Count: 1240, Expected: 3.5}
	for name, test := range map[string]struct {
		state   State
		version int64
		follows bool
	}{
		"first":   {State{}, 0, true},
		"again":   {State{Spike: Spike{Hour: noon.Add(-spikeApart)}}, 1, true},
		"same":    {State{Spike: Spike{Hour: noon.Add(time.Hour - spikeApart)}}, 1, false},
		"earlier": {State{Spike: Spike{Hour: noon.Add(time.Hour)}}, 1, false},
		"ignored": {State{Status: Ignored}, 1, false},
		"full":    {State{}, maxSpikes, false},
	} {
		d, follows := test.state.Spiked(found, test.version, noon)
		if follows != test.follows {
			t.Errorf("%s: %t", name, follows)
		}
		if want := "It happened 1,240 times in the hour from 2026-11-20 12:00 UTC, and 3.5 were expected."; follows && (d.Reason != want || d.Kind != WasSpiking) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// The numbers of FindSpike were chosen by series of even seeds. Here it is judged by those
// of odd ones: how often a group without a spike has one, and how many it finds, how fast.
func TestSpikesOfGeneratedSeries(t *testing.T) {
	bursts := []struct {
		name        string
		times, plus float64
	}{{"5 times", 5, 0}, {"10 times", 10, 0}, {"+30", 1, 30}, {"+100", 1, 100}}
	const weeks, runs = 4, 25
	var alarms, groupWeeks float64
	found, all, hours := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for k, of := range spikeSeries() {
		for seed := uint64(1); seed < 2*runs; seed += 2 {
			random := rand.New(rand.NewPCG(seed, uint64(k)))
			series := make([]int64, weeks*SpikeHours)
			for h := range series {
				series[h] = poisson(random, of.rate(h)*gamma(random, of.shape))
			}
			groupWeeks += weeks - 1
			alarms += spikesIn(series)
			for _, burst := range bursts {
				at := SpikeHours + random.IntN(2*SpikeHours)
				if base := of.rate(at); burst.plus > 0 && base > burst.plus/5 || base*burst.times+burst.plus < 30 {
					continue // nothing that stands out
				}
				all[burst.name]++
				if after, ok := detect(random, of, series, at, burst.times, burst.plus); ok {
					found[burst.name]++
					hours[burst.name] += after
				}
			}
		}
	}
	t.Logf("%.3f false alarms in a group's week", alarms/groupWeeks)
	for _, burst := range bursts {
		name := burst.name
		t.Logf("%s: found %.0f %%, after %.1f hours", name, 100*found[name]/all[name], hours[name]/found[name])
	}
	if alarms/groupWeeks > 0.04 || found["10 times"]/all["10 times"] < 0.65 || found["+100"]/all["+100"] < 0.8 {
		t.Error("this is worse than it was")
	}
}

func spikesIn(series []int64) (n float64) {
	last := -SpikeHours
	for h := SpikeHours; h < len(series); h++ {
		if _, spikes := FindSpike(noon, series[h], series[h-SpikeHours:h]); spikes && h-last >= 24 {
			n, last = n+1, h
		}
	}
	return n
}

// detect says how many hours after its beginning, somewhere within the hour at, a
// burst of four hours is found, by steps of a twentieth of an hour.
func detect(random *rand.Rand, of series, quiet []int64, at int, times, plus float64) (after float64, found bool) {
	const steps = 20
	series, begins := append([]int64{}, quiet[:at+5]...), random.IntN(steps)
	for h := at; h < at+4; h++ {
		more := (of.rate(h)*(times-1) + plus) * gamma(random, of.shape) / steps
		series[h] = 0
		for step := range steps {
			series[h] += poisson(random, float64(quiet[h])/steps)
			if h > at || step >= begins {
				series[h] += poisson(random, more)
				if _, spikes := FindSpike(noon, series[h], series[h-SpikeHours:h]); spikes {
					return float64((h-at)*steps+step-begins) / steps, true
				}
			}
		}
	}
	return 0, false
}

// series is how often an error happens in an hour, and how evenly: by the
// shape of a gamma distribution; 0: as evenly as chance has it.
type series struct {
	rate  func(hour int) float64
	shape float64
}

func spikeSeries() (all []series) {
	for _, mean := range []float64{0, 0.1, 1, 10, 100, 2000} {
		all = append(all, series{func(int) float64 { return mean }, 0})
	}
	for _, of := range [][2]float64{{1, 1}, {10, 1}, {100, 1}, {100, 3}, {5, 0.3}} {
		all = append(all, series{func(int) float64 { return of[0] }, of[1]})
	}
	for _, mean := range []float64{5, 20, 100, 200} {
		daily := func(h int) float64 { return mean * math.Exp(1.5*math.Sin(2*math.Pi*float64(h%24)/24)) }
		weekend := func(h int) float64 { return daily(h) * map[bool]float64{true: 0.15, false: 1}[h/24%7 >= 5] }
		all = append(all, series{daily, 5}, series{weekend, 5})
	}
	job := func(moves int) func(int) float64 {
		return func(h int) float64 { return map[bool]float64{true: 200, false: 0.5}[h%24 == 3+h/24*7919%(moves+1)] }
	}
	growing := func(h int) float64 { return 5 * math.Exp(0.12*float64(h)/24) }
	return append(all, series{job(0), 3}, series{job(2), 3}, series{growing, 5})
}

func poisson(random *rand.Rand, mean float64) (n int64) {
	if mean > 200 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*random.NormFloat64())))
	}
	for left := random.ExpFloat64(); left < mean; left += random.ExpFloat64() {
		n++
	}
	return n
}

// gamma has the mean 1 (Marsaglia and Tsang).
func gamma(random *rand.Rand, shape float64) float64 {
	if shape == 0 {
		return 1
	}
	boost, k := 1.0, shape
	if shape < 1 {
		boost, k = math.Pow(random.Float64(), 1/shape), shape+1
	}
	d := k - 1.0/3
	for {
		x := random.NormFloat64()
		v := math.Pow(1+x/math.Sqrt(9*d), 3)
		if v > 0 && math.Log(random.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v / shape
		}
	}
}
