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
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
)

// With any fault of the network each message is written exactly once,
// in the order of its key.
func TestPublishOverBadNetworks(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut by the test")
	for name, fault := range map[string]func(*bustest.Network, *bustest.BrittleConn, []byte) error{
		"answers lost": func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
			if bustest.IsProduce(b) && n.Strikes(10) {
				c.LosesAnswers.Store(true)
			}
			return nil
		},
		"requests lost": func(n *bustest.Network, _ *bustest.BrittleConn, b []byte) error {
			if bustest.IsProduce(b) && n.Strikes(10) {
				return cut
			}
			return nil
		},
		"requests cut in the middle": func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
			if bustest.IsProduce(b) && len(b) > 100 && n.Strikes(10) {
				c.Conn.Write(b[:len(b)/2])
				return cut
			}
			return nil
		},
		"black hole": func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
			if bustest.IsProduce(b) && n.Strikes(100) {
				c.HidesClose.Store(true)
				c.LosesAnswers.Store(true)
			}
			return nil
		},
		"trickle": func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
			if n.Strikes(30) {
				c.Slow.Store(true)
			}
			return nil
		},
		"everything": func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
			if n.Strikes(20) {
				c.LosesAnswers.Store(true)
			}
			if n.Strikes(20) {
				return cut
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers, topic := kafkatest.Shared(t), "test.network."+bustest.TopicName(name)
			bustest.Ensure(t, brokers, topic, 4, nil)
			n := &bustest.Network{Fault: fault, Random: chance(t)}
			p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: n.Dialer(), RequestTimeout: 300 * time.Millisecond})
			tr := startTraffic(p, topic, 16, time.Millisecond)
			testenv.Eventually(t, func() error {
				if n.Faults.Load() < int64(testenv.Rounds(t, 5, 50)) || tr.confirmed() < 500 {
					return errors.New("not enough faults yet")
				}
				return nil
			})
			n.Healed.Store(true)
			tr.stop()
			if _, repeated := tr.audit(t, bustest.ReadAll(t, brokers, topic)); repeated > 0 || len(tr.unknown)+len(tr.refused) > 0 {
				t.Errorf("%d repeated, %d unknown, %d not written: want none", repeated, len(tr.unknown), len(tr.refused))
			}
		})
	}
}

// A message is not refused while it has time, even if the first answers
// come too late.
func TestPublishAfterLateAnswers(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.late"
	bustest.Ensure(t, brokers, topic, 1, nil)
	n := &bustest.Network{Random: chance(t), Fault: func(n *bustest.Network, c *bustest.BrittleConn, _ []byte) error {
		if n.Strikes(1) {
			c.HidesClose.Store(true)
			c.LosesAnswers.Store(true)
			if n.Faults.Load() >= 3 {
				n.Healed.Store(true)
			}
		}
		return nil
	}}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: n.Dialer(), RequestTimeout: 100 * time.Millisecond, DeliveryTimeout: testenv.Patience})
	bustest.Publish(t, p, topic, 0, 1, 1)
	if n.Faults.Load() < 3 {
		t.Errorf("%d faults, want 3", n.Faults.Load())
	}
}

// With the same faults under a consumer each record takes effect once.
func TestConsumeOverBadNetworks(t *testing.T) {
	t.Parallel()
	brokers, topic, pool := kafkatest.Shared(t), "test.network", bustest.Database(t)
	bustest.Effects(t, pool)
	bustest.Ensure(t, brokers, topic, 4, nil)
	n := &bustest.Network{Random: chance(t), Fault: func(n *bustest.Network, c *bustest.BrittleConn, _ []byte) error {
		if n.Strikes(10) {
			c.LosesAnswers.Store(true)
		}
		if n.Strikes(10) {
			return errors.New("cut by the test")
		}
		return nil
	}}
	cfg := bustest.QuickConsumer(brokers, topic, pool, bustest.WriteEffects)
	cfg.Dialer, cfg.FetchWait = n.Dialer(), 50*time.Millisecond
	tr := startTraffic(bustest.NewPublisher(t, publisher.Config{Brokers: brokers}), topic, 8, time.Millisecond)
	bustest.StartConsumer(t, cfg)
	testenv.Eventually(t, func() error {
		if n.Faults.Load() < int64(testenv.Rounds(t, 20, 200)) || tr.confirmed() < 500 {
			return errors.New("not enough faults yet")
		}
		return nil
	})
	n.Healed.Store(true)
	tr.stop()
	bustest.Applied(t, pool, tr.confirmed())
}

// Without any answer, every caller gets the outcome of its message
// within the delivery timeout, and Close does not hang.
func TestPublishIntoABlackHole(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.hole"
	bustest.Ensure(t, brokers, topic, 1, nil)
	n := &bustest.Network{Random: chance(t), Fault: func(n *bustest.Network, c *bustest.BrittleConn, b []byte) error {
		if bustest.IsProduce(b) && n.Strikes(1) {
			c.HidesClose.Store(true)
			c.LosesAnswers.Store(true)
		}
		return nil
	}}
	p := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: n.Dialer(), RequestTimeout: 200 * time.Millisecond, DeliveryTimeout: time.Second})
	tr := startTraffic(p, topic, 4, time.Millisecond)
	testenv.Eventually(t, func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if len(tr.unknown) < 4 {
			return errors.New("no caller has an answer yet")
		}
		return nil
	})
	n.Healed.Store(true)
	testenv.Eventually(t, func() error {
		if tr.confirmed() < 100 {
			return errors.New("not working again")
		}
		return nil
	})
	tr.stop()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	tr.audit(t, bustest.ReadAll(t, brokers, topic))
}

// Brokers refuse records of a machine whose clock is hours ahead: their
// publisher reports it at once, with the time and the way out, does not retry,
// and goes on when the clock is right. Records of others are not affected.
func TestPublishByAWrongClock(t *testing.T) {
	t.Parallel()
	brokers, topic := kafkatest.Shared(t), "test.clock"
	bustest.Ensure(t, brokers, topic, 1, nil)
	n := &bustest.Network{Fault: func(n *bustest.Network, _ *bustest.BrittleConn, b []byte) error {
		if bustest.IsProduce(b) && !n.Healed.Load() {
			n.Faults.Add(1)
			setAhead(b, len("test"), len(topic), 3*time.Hour)
		}
		return nil
	}}
	wrong := bustest.NewPublisher(t, publisher.Config{Brokers: brokers, Dialer: n.Dialer()})
	right := bustest.NewPublisher(t, publisher.Config{Brokers: brokers})
	for i := range 3 {
		err := wrong.Publish(topic, bustest.Keyed(i, 1, 1)...)
		if !errors.Is(err, kafka.InvalidTimestamp) || errors.Is(err, bus.ErrUnknownOutcome) || !strings.Contains(err.Error(), "message.timestamp.after.max.ms") {
			t.Errorf("error is %v", err)
		}
		bustest.Publish(t, right, topic, 10+i, 1, 1)
	}
	if sent := n.Faults.Load(); sent != 3 {
		t.Errorf("three messages were sent %d times", sent)
	}
	n.Healed.Store(true)
	bustest.Publish(t, wrong, topic, 20, 1, 1)
	if got := strings.Join(bustest.IDs(t, brokers, topic), " "); got != "id-10 id-11 id-12 id-20" {
		t.Errorf("the log holds %q", got)
	}
}

// setAhead changes the times of the batch in a Produce request for one
// partition, as if another clock had set them. The request's strings
// are the client's id and the topic.
func setAhead(request []byte, client, topic int, ahead time.Duration) {
	batch := request[40+client+topic:]
	for _, at := range []int{27, 35} { // its first time, its last one
		stamp := binary.BigEndian.Uint64(batch[at:])
		binary.BigEndian.PutUint64(batch[at:], stamp+uint64(ahead.Milliseconds()))
	}
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
}
