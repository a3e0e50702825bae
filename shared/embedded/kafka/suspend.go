package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// When kfake compacts, it also drops expired records of all topics. If a
// whole partition has expired, the next start would begin it at offset 0,
// before its readers' positions. So meanwhile no topic has a retention.

const (
	suspendedFile = "retention.suspended" // each topic's former retention.ms
	retentionName = "retention.ms"
	noRetention   = "-1"
)

// suspendRetention stores the topics' retention, and makes
// them keep everything.
func suspendRetention(ctx context.Context, client *kgo.Client, dir string, topics []topic) error {
	was, is := map[string]string{}, map[string]string{}
	for _, t := range topics {
		if value := t.Configs[retentionName]; t.limit(retentionName) >= 0 {
			was[t.Name], is[t.Name] = value, noRetention
		}
	}
	text, err := json.Marshal(was)
	if err != nil {
		return err
	}
	place := filepath.Join(dir, suspendedFile)
	if err := os.WriteFile(place+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(place+".new", place); err != nil {
		return err
	}
	return setRetention(ctx, client, is)
}

// resumeRetention restores the topics' stored retention, if any.
func resumeRetention(ctx context.Context, client *kgo.Client, dir string) error {
	place := filepath.Join(dir, suspendedFile)
	text, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was := map[string]string{}
	if err := json.Unmarshal(text, &was); err != nil {
		return damaged(place, "it is not JSON: %v", err)
	}
	if err := setRetention(ctx, client, was); err != nil {
		return err
	}
	return os.Remove(place)
}

// setRetention sets retention.ms of topics; it skips deleted ones.
func setRetention(ctx context.Context, client *kgo.Client, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	for topic, value := range values {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Value = retentionName, kmsg.StringPtr(value)
		resource := kmsg.NewIncrementalAlterConfigsRequestResource()
		resource.ResourceType, resource.ResourceName, resource.Configs = kmsg.ConfigResourceTypeTopic, topic, append(resource.Configs, config)
		req.Resources = append(req.Resources, resource)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("cannot set %s of %d topics: %w", retentionName, len(values), err)
	}
	for _, resource := range resp.Resources {
		if err := kerr.ErrorForCode(resource.ErrorCode); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("cannot set %s of %q: %w", retentionName, resource.ResourceName, err)
		}
	}
	return nil
}
