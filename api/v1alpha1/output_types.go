package v1alpha1

// Output is a destination of results in addition to the bundle.
//
// +kubebuilder:validation:ExactlyOneOf=httpPostSpec;elasticsearchSpec;otlpSpec;remoteWriteSpec;s3Spec;fileSpec
type Output struct {
	// name that actions use to refer to the output.
	// +required
	Name Name `json:"name"`
	// httpPostSpec sends results to a server.
	// +optional
	HTTPPostSpec *HTTPPostSpec `json:"httpPostSpec,omitempty"`
	// elasticsearchSpec sends results to an index of Elasticsearch or OpenSearch.
	// +optional
	ElasticsearchSpec *ElasticsearchSpec `json:"elasticsearchSpec,omitempty"`
	// otlpSpec sends results to a receiver of OpenTelemetry.
	// +optional
	OTLPSpec *OTLPSpec `json:"otlpSpec,omitempty"`
	// remoteWriteSpec sends the metrics of the run in progress to Prometheus.
	// +optional
	RemoteWriteSpec *RemoteWriteSpec `json:"remoteWriteSpec,omitempty"`
	// s3Spec puts the bundle into a bucket at the end of the run.
	// +optional
	S3Spec *S3OutputSpec `json:"s3Spec,omitempty"`
	// fileSpec writes results to a file.
	// +optional
	FileSpec *FileSpec `json:"fileSpec,omitempty"`
}

// Credentials returns where the credentials of the output are, or nil.
func (o *Output) Credentials() *OutputCredentials {
	switch {
	case o.ElasticsearchSpec != nil:
		return o.ElasticsearchSpec.Credentials
	case o.OTLPSpec != nil:
		return o.OTLPSpec.Credentials
	case o.RemoteWriteSpec != nil:
		return o.RemoteWriteSpec.Credentials
	case o.S3Spec != nil:
		return o.S3Spec.Credentials
	}
	return nil
}

// HTTPPostSpec sends results to a server as JSON in the body of POST requests.
type HTTPPostSpec struct {
	// url of the server, http or https.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// ElasticsearchSpec sends results to an index of Elasticsearch or OpenSearch in batches.
type ElasticsearchSpec struct {
	// url of the server, http or https, without the index.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// index of the documents.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9._-]*$`
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:default=cnsbench
	Index string `json:"index,omitempty"`
	// credentials for the server. The environment variable CNSBENCH_OUTPUT_<NAME>_AUTHORIZATION has priority.
	// +optional
	Credentials *OutputCredentials `json:"credentials,omitempty"`
}

// OTLPSpec sends each operation as a trace, and the figures of workloads and of the run as metrics, by OTLP/HTTP.
type OTLPSpec struct {
	// url of the receiver, http or https, without /v1/traces and /v1/metrics.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// credentials for the receiver. The environment variable CNSBENCH_OUTPUT_<NAME>_AUTHORIZATION has priority.
	// +optional
	Credentials *OutputCredentials `json:"credentials,omitempty"`
}

// RemoteWriteSpec sends the metrics of the run, those of run --serve-metrics, by remote write 1.0 of Prometheus at each
// interval.
type RemoteWriteSpec struct {
	// url of the receiver, http or https, with its path, such as http://prometheus:9090/api/v1/write.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://.+`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// interval between two samples of each series, 1s or more.
	// +optional
	// +kubebuilder:default="5s"
	Interval *Duration `json:"interval,omitempty"`
	// credentials for the receiver. The environment variable CNSBENCH_OUTPUT_<NAME>_AUTHORIZATION has priority.
	// +optional
	Credentials *OutputCredentials `json:"credentials,omitempty"`
}

// S3OutputSpec puts each file of the bundle into a bucket as an object, the manifest last.
type S3OutputSpec struct {
	// endpoint is the URL of the store, without the bucket.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint"`
	// bucket, which must exist.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	// +kubebuilder:validation:MaxLength=63
	Bucket string `json:"bucket"`
	// prefix of the keys, which are PREFIX/BENCHMARK-RUN/FILE.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$`
	// +kubebuilder:validation:MaxLength=512
	Prefix string `json:"prefix,omitempty"`
	// region that requests are signed for; by default us-east-1.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// addressing is the place of the bucket in a URL: in the path, or in front of the host name of the endpoint
	// (virtualHost). Connections always go to the address of the endpoint.
	// +optional
	// +kubebuilder:validation:Enum=path;virtualHost
	// +kubebuilder:default=path
	Addressing string `json:"addressing,omitempty"`
	// caFile has trusted certificates in PEM format.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	CAFile string `json:"caFile,omitempty"`
	// credentials for the store. The environment variables CNSBENCH_OUTPUT_<NAME>_ACCESSKEY, _SECRETKEY and
	// _SESSIONTOKEN have priority.
	// +optional
	Credentials *OutputCredentials `json:"credentials,omitempty"`
}

// OutputCredentials locates credentials; it never contains them. Their keys are username and password, or
// authorization, which is the whole header of that name. Those of an s3Spec are accesskey and secretkey, and
// sessiontoken if there is one.
//
// +kubebuilder:validation:ExactlyOneOf=secretName;file
type OutputCredentials struct {
	// secretName is a Secret in the namespace of the run (kubernetes).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// file is the absolute path of a file with KEY=VALUE lines (local). Only its owner may have read permission.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	File string `json:"file,omitempty"`
}

// FileSpec writes results to a file of the bundle.
type FileSpec struct {
	// path of the file, relative to the directory outputs of the bundle.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Path string `json:"path"`
	// format of the file: the documents as JSON lines, or tables as CSV, of which each has a file of its own:
	// NAME.ops.csv and NAME.figures.csv for the path NAME.csv.
	// +optional
	// +kubebuilder:validation:Enum=jsonl;csv
	// +kubebuilder:default=jsonl
	Format string `json:"format,omitempty"`
}
