package objects

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// A bucket keeps objects in S3. Credentials come from where AWS's own
// programs look for them: the environment, its files, the machine's role.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

func openBucket(at *url.URL) (Store, error) {
	query := at.Query()
	for parameter := range query {
		if parameter != "endpoint" && parameter != "region" {
			return nil, fmt.Errorf("the address of the archive has the parameter %q: there are only endpoint and region", parameter)
		}
	}
	endpoint, err := url.Parse(cmp.Or(query.Get("endpoint"), "https://s3.amazonaws.com"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" {
		return nil, fmt.Errorf("the endpoint %q of the archive is no address such as https://s3.example:9000", query.Get("endpoint"))
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Secure: endpoint.Scheme == "https", Region: query.Get("region"),
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}}),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the archive's bucket: %w", err)
	}
	return &bucket{client, at.Host, strings.Trim(at.Path, "/")}, nil
}

func (b *bucket) key(name string) string { return path.Join(b.prefix, name) }

func (b *bucket) Put(ctx context.Context, name string, body []byte) error {
	_, err := b.client.PutObject(ctx, b.name, b.key(name), bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{DisableMultipart: true})
	if err != nil {
		return fmt.Errorf("cannot store object %s: %w", name, err)
	}
	return nil
}

func (b *bucket) GetRange(ctx context.Context, name string, from, length int64) ([]byte, error) {
	var options minio.GetObjectOptions
	err := options.SetRange(from, from+length-1)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %d bytes of object %s from %d on: %w", length, name, from, err)
	}
	object, err := b.client.GetObject(ctx, b.name, b.key(name), options)
	if err != nil {
		return nil, fmt.Errorf("cannot read object %s: %w", name, err)
	}
	body := make([]byte, length)
	_, err = io.ReadFull(object, body)
	if err = errors.Join(err, object.Close()); err != nil {
		return nil, fmt.Errorf("cannot read %d bytes of object %s from %d on: %w", length, name, from, err)
	}
	return body, nil
}

func (b *bucket) Delete(ctx context.Context, name string) error {
	if err := b.client.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("cannot delete object %s: %w", name, err)
	}
	return nil
}
