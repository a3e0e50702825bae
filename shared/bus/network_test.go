package bus_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/testenv"
)

// Whatever the network does to requests and answers, each message is written exactly once, in the order of its key.
func TestPublishOverBadNetworks(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut by the test")
	for name, fault := range map[string]func(*network, *brittle, []byte) error{
		"answers lost": func(n *network, c *brittle, b []byte) error {
			if isProduce(b) && n.strikes(10) {
				c.deaf.Store(true)
			}
			return nil
		},
		"requests lost": func(n *network, _ *brittle, b []byte) error {
			if isProduce(b) && n.strikes(10) {
				return cut
			}
			return nil
		},
		"requests cut in the middle": func(n *network, c *brittle, b []byte) error {
			if isProduce(b) && len(b) > 100 && n.strikes(10) {
				c.Conn.Write(b[:len(b)/2])
				return cut
			}
			return nil
		},
		"black hole": func(n *network, c *brittle, b []byte) error {
			if isProduce(b) && n.strikes(100) {
				c.mute.Store(true)
				c.deaf.Store(true)
			}
			return nil
		},
		"trickle": func(n *network, c *brittle, b []byte) error {
			if n.strikes(30) {
				c.slow.Store(true)
			}
			return nil
		},
		"everything": func(n *network, c *brittle, b []byte) error {
			if n.strikes(20) {
				c.deaf.Store(true)
			}
			if n.strikes(20) {
				return cut
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers, topic := testenv.SharedKafka(t), "test.network."+topicName(name)
			ensure(t, brokers, topic, 4, nil)
			n := &network{fault: fault, random: chance(t)}
			p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, Dialer: n.dialer(), RequestTimeout: 300 * time.Millisecond})
			tr := startTraffic(p, topic, 16, time.Millisecond)
			testenv.Eventually(t, patience+time.Duration(testenv.Rounds(t, 5, 50))*2*time.Second, func() error {
				if n.faults.Load() < int64(testenv.Rounds(t, 5, 50)) || tr.confirmed() < 500 {
					return errors.New("not enough faults yet")
				}
				return nil
			})
			n.healed.Store(true)
			tr.stop()
			if _, repeated := tr.audit(t, readAll(t, brokers, topic)); repeated > 0 || len(tr.unknown)+len(tr.refused) > 0 {
				t.Errorf("%d repeated, %d unknown, %d not written: want none", repeated, len(tr.unknown), len(tr.refused))
			}
		})
	}
}

// A network on which the first answers never come in time is no reason to refuse a message that still has time.
func TestPublishWhereNobodyAnswersAtFirst(t *testing.T) {
	t.Parallel()
	brokers, topic := testenv.SharedKafka(t), "test.late"
	ensure(t, brokers, topic, 1, nil)
	n := &network{random: chance(t), fault: func(n *network, c *brittle, _ []byte) error {
		if n.strikes(1) {
			c.mute.Store(true)
			c.deaf.Store(true)
			if n.faults.Load() >= 3 {
				n.healed.Store(true)
			}
		}
		return nil
	}}
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, Dialer: n.dialer(), RequestTimeout: 100 * time.Millisecond, DeliveryTimeout: patience})
	publish(t, p, topic, 0, 1, 1)
	if n.faults.Load() < 3 {
		t.Errorf("%d faults, want 3", n.faults.Load())
	}
}

// The same networks under a consumer: each record takes effect once.
func TestConsumeOverBadNetworks(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := testenv.SharedKafka(t), "test.network", database(t)
	effects(t, pool)
	ensure(t, brokers, topic, 4, nil)
	n := &network{random: chance(t), fault: func(n *network, c *brittle, _ []byte) error {
		if n.strikes(10) {
			c.deaf.Store(true)
		}
		if n.strikes(10) {
			return errors.New("cut by the test")
		}
		return nil
	}}
	cfg := quick(brokers, topic, pool, writeEffects)
	cfg.Dialer, cfg.FetchWait = n.dialer(), 50*time.Millisecond
	tr := startTraffic(newPublisher(t, bus.PublisherConfig{Brokers: brokers}), topic, 8, time.Millisecond)
	startConsumer(t, cfg)
	testenv.Eventually(t, patience, func() error {
		if n.faults.Load() < int64(testenv.Rounds(t, 20, 200)) || tr.confirmed() < 500 {
			return errors.New("not enough faults yet")
		}
		return nil
	})
	n.healed.Store(true)
	tr.stop()
	applied(t, pool, tr.confirmed(), patience)
}

// When nothing answers, every caller learns within the delivery timeout what became of its message, and Close does not hang.
func TestPublishIntoABlackHole(t *testing.T) {
	t.Parallel()
	brokers, topic := testenv.SharedKafka(t), "test.hole"
	ensure(t, brokers, topic, 1, nil)
	n := &network{random: chance(t), fault: func(n *network, c *brittle, b []byte) error {
		if isProduce(b) && n.strikes(1) {
			c.mute.Store(true)
			c.deaf.Store(true)
		}
		return nil
	}}
	p := newPublisher(t, bus.PublisherConfig{Brokers: brokers, Dialer: n.dialer(), RequestTimeout: 200 * time.Millisecond, DeliveryTimeout: time.Second})
	tr := startTraffic(p, topic, 4, time.Millisecond)
	testenv.Eventually(t, patience, func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if len(tr.unknown) < 4 {
			return errors.New("nobody was told yet")
		}
		return nil
	})
	n.healed.Store(true)
	testenv.Eventually(t, patience, func() error {
		if tr.confirmed() < 100 {
			return errors.New("not working again")
		}
		return nil
	})
	tr.stop()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	tr.audit(t, readAll(t, brokers, topic))
}

// Records of a machine whose clock is hours ahead are refused by the brokers: their publisher says so at once, with the time and the
// way out, tries no more, and goes on when the clock is right. Records of others are not touched.
func TestPublishByAWrongClock(t *testing.T) {
	t.Parallel()
	brokers, topic := testenv.SharedKafka(t), "test.clock"
	ensure(t, brokers, topic, 1, nil)
	n := &network{fault: func(n *network, _ *brittle, b []byte) error {
		if isProduce(b) && !n.healed.Load() {
			n.faults.Add(1)
			setAhead(b, len("test"), len(topic), 3*time.Hour)
		}
		return nil
	}}
	wrong := newPublisher(t, bus.PublisherConfig{Brokers: brokers, Dialer: n.dialer()})
	right := newPublisher(t, bus.PublisherConfig{Brokers: brokers})
	for i := range 3 {
		err := wrong.Publish(topic, keyed(i, 1, 1)...)
		if !errors.Is(err, kafka.InvalidTimestamp) || errors.Is(err, bus.ErrUnknownOutcome) || !strings.Contains(err.Error(), "message.timestamp.after.max.ms") {
			t.Errorf("error is %v", err)
		}
		publish(t, right, topic, 10+i, 1, 1)
	}
	if sent := n.faults.Load(); sent != 3 {
		t.Errorf("three messages were sent %d times", sent)
	}
	n.healed.Store(true)
	publish(t, wrong, topic, 20, 1, 1)
	if got := strings.Join(ids(t, brokers, topic), " "); got != "id-10 id-11 id-12 id-20" {
		t.Errorf("the log says %q", got)
	}
}

// setAhead changes the times of the batch in a Produce request for one partition, as if another clock had stamped it. The request's
// strings are the client's id and the topic.
func setAhead(request []byte, client, topic int, ahead time.Duration) {
	batch := request[40+client+topic:]
	for _, at := range []int{27, 35} { // its first time, its last one
		stamp := binary.BigEndian.Uint64(batch[at:])
		binary.BigEndian.PutUint64(batch[at:], stamp+uint64(ahead.Milliseconds()))
	}
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
}
