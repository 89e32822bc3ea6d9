// Events: recording, waiting, asking, and the time between two.
#include "conformance.cuh"

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}

int main() {
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));

    chapter("making");
    cudaEvent_t start, end, untimed;
    CALL(cudaEventCreate(&start));
    CALL(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    CALL(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    cudaEvent_t broken;
    CALL(cudaEventCreateWithFlags(&broken, 0x80));
    CALL(cudaEventCreateWithFlags(&broken, cudaEventInterprocess));
    CALL(cudaEventCreate(nullptr));

    chapter("before recording");
    float time = -1;
    CALL(cudaEventQuery(start));
    CALL(cudaEventSynchronize(start));
    CALL(cudaEventElapsedTime(&time, start, end));

    chapter("time");
    CALL(cudaEventRecord(start, stream));
    spin<<<1, 32, 0, stream>>>(20000);
    CALL(cudaEventRecord(end, stream));
    CALL(cudaEventSynchronize(end));
    CALL(cudaEventQuery(end));
    CALL(cudaEventElapsedTime(&time, start, end));
    EXPECT(time > 0.005f && time < 5.0f);
    CALL(cudaEventElapsedTime(&time, end, start));
    EXPECT(time < 0);
    CALL(cudaEventElapsedTime(&time, start, start));
    EXPECT(time == 0);
    CALL(cudaEventElapsedTime(nullptr, start, end));

    chapter("not ready");
    spin<<<1, 32, 0, stream>>>(50000000);
    CALL(cudaEventRecord(end, stream));
    CALL(cudaEventQuery(end));
    CALL(cudaStreamQuery(stream));
    CALL(cudaEventElapsedTime(&time, start, end));
    CALL(cudaEventSynchronize(end));
    CALL(cudaEventQuery(end));

    chapter("without timing");
    CALL(cudaEventRecordWithFlags(untimed, stream, cudaEventRecordDefault));
    CALL(cudaEventSynchronize(untimed));
    CALL(cudaEventElapsedTime(&time, start, untimed));
    CALL(cudaEventRecordWithFlags(untimed, stream, 9));

    chapter("the driver's words");
    CUevent first, second;
    CALL(cuEventCreate(&first, CU_EVENT_DEFAULT));
    CALL(cuEventCreate(&second, CU_EVENT_BLOCKING_SYNC));
    CALL(cuEventRecord(first, stream));
    CALL(cuEventRecordWithFlags(second, stream, CU_EVENT_RECORD_DEFAULT));
    CALL(cuEventSynchronize(second));
    CALL(cuEventQuery(first));
    CALL(cuEventElapsedTime(&time, first, second));
    EXPECT(time >= 0);
    CALL(cuEventDestroy(first));
    CALL(cuEventDestroy(second));

    chapter("the end");
    CALL(cudaEventDestroy(start));
    CALL(cudaEventDestroy(end));
    CALL(cudaEventDestroy(untimed));
    CALL(cudaStreamDestroy(stream));
    return finish();
}
