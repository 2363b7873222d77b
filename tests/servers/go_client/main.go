// A client by franz-go for tests: it produces, consumes, and says why it may not.
//
//	goclient brokers
//	        asks for the brokers once
//	goclient produce TOPIC CODEC IDEMPOTENT
//	        each line of stdin has a partition, a key and a value, with tabs between
//	goclient consume TOPIC COUNT PARTITIONS
//	        prints a line with partition, offset and the lengths of key and value, then the bytes
//	        of both, for each record
//	goclient paced TOPIC
//	        sends the numbers 0, 1, ... to partition 0, each after the acknowledgement of the one
//	        before, until stdin ends; prints how many
//
// The connection is described by a JSON object in GO_CLIENT. Invariant: the first error that the
// library reports ends the program, with the error on stderr.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type connection struct {
	Bootstrap string `json:"bootstrap"`
	// CA is a file; empty: no TLS.
	CA string `json:"ca"`
	// Certificate and Key are files of the client's own; empty: it shows none.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	// Version is the only version of TLS, as in "TLSv1.3"; empty: any.
	Version   string `json:"version"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
	// Token is for OAUTHBEARER.
	Token string `json:"token"`
	// TimeoutS bounds the whole run.
	TimeoutS float64 `json:"timeout_s"`
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	var to connection
	if err := json.Unmarshal([]byte(os.Getenv("GO_CLIENT")), &to); err != nil {
		return fmt.Errorf("GO_CLIENT: %w", err)
	}
	options, err := to.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(to.TimeoutS*float64(time.Second)))
	defer cancel()
	switch {
	case len(words) == 1 && words[0] == "brokers":
		return brokers(ctx, options)
	case len(words) == 4 && words[0] == "produce":
		return produce(ctx, options, words[1], words[2], words[3] == "true")
	case len(words) == 4 && words[0] == "consume":
		return consume(ctx, options, words[1], words[2], words[3])
	case len(words) == 2 && words[0] == "paced":
		return paced(ctx, options, words[1])
	}
	return errors.New("usage: goclient brokers | produce TOPIC CODEC IDEMPOTENT | consume TOPIC COUNT PARTS | paced TOPIC")
}

func (to connection) options() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(to.Bootstrap)}
	if to.CA != "" {
		pem, err := os.ReadFile(to.CA)
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", to.CA)
		}
		config := &tls.Config{RootCAs: trusted}
		if version, found := versions[to.Version]; found {
			config.MinVersion, config.MaxVersion = version, version
		}
		if to.Certificate != "" {
			own, err := tls.LoadX509KeyPair(to.Certificate, to.Key)
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{own}
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	mechanism, err := to.sasl()
	if mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	return options, err
}

func (to connection) sasl() (sasl.Mechanism, error) {
	secret := scram.Auth{User: to.User, Pass: to.Password}
	switch to.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return plain.Auth{User: to.User, Pass: to.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return secret.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return secret.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: to.Token}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("unknown mechanism %s", to.Mechanism)
}

func brokers(ctx context.Context, options []kgo.Opt) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func produce(ctx context.Context, options []kgo.Opt, topic, codec string, isIdempotent bool) error {
	used, isKnown := codecs[codec]
	if !isKnown {
		return fmt.Errorf("unknown codec %s", codec)
	}
	options = append(options, kgo.ProducerBatchCompression(used))
	if !isIdempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := producer(options, topic)
	if err != nil {
		return err
	}
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	lines.Split(line)
	var records []*kgo.Record
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), "\t", 3)
		if len(parts) != 3 {
			return fmt.Errorf("not a partition, a key and a value: %q", lines.Text())
		}
		partition, err := strconv.ParseInt(parts[0], 10, 32)
		if err != nil {
			return err
		}
		records = append(records, &kgo.Record{
			Partition: int32(partition), Key: []byte(parts[1]), Value: []byte(parts[2]),
		})
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

// line splits at newlines. Unlike bufio.ScanLines, it keeps a carriage return: values may end with it.
func line(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func producer(options []kgo.Opt, topic string) (*kgo.Client, error) {
	return kgo.NewClient(append(options,
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
}

func consume(ctx context.Context, options []kgo.Opt, topic, count, partitions string) error {
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(partitions, 10, 32)
	if err != nil {
		return err
	}
	starts := map[int32]kgo.Offset{}
	for partition := range int32(number) {
		starts[partition] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(append(options,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	out := bufio.NewWriter(os.Stdout)
	for left > 0 {
		fetched := client.PollRecords(ctx, left)
		if err := fetched.Err(); err != nil {
			return err
		}
		fetched.EachRecord(func(each *kgo.Record) {
			fmt.Fprintf(out, "%d %d %d %d\n", each.Partition, each.Offset, len(each.Key), len(each.Value))
			out.Write(each.Key)
			out.Write(each.Value)
			left--
		})
	}
	return out.Flush()
}

func paced(ctx context.Context, options []kgo.Opt, topic string) error {
	client, err := producer(options, topic)
	if err != nil {
		return err
	}
	defer client.Close()
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for sent := 0; ; sent++ {
		select {
		case <-ended:
			fmt.Println(sent)
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		record := &kgo.Record{Value: []byte(strconv.Itoa(sent))}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
}
