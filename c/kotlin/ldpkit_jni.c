/* What Ledger.kt calls. A handle is the address of an ldp_device, a table that of an ldp_study. */
#include <jni.h>

#include "ldpkit_device.h"

#define FUNCTION(type, name) JNIEXPORT type JNICALL Java_ldpkit_Ledger_##name

/* Ledger.kt has these sizes. */
typedef char sizes_are_known[sizeof(ldp_value) == 16 && sizeof(ldp_parcel) == 80 ? 1 : -1];

static ldp_device *device_at(jlong handle) { return (ldp_device *)(intptr_t)handle; }
static const ldp_study *study_at(jlong table) { return (const ldp_study *)(intptr_t)table; }

static ldp_parcel parcel_from(JNIEnv *env, jbyteArray bytes) {
    ldp_parcel parcel = {.next = 0};
    (*env)->GetByteArrayRegion(env, bytes, 0, sizeof parcel, (jbyte *)&parcel);
    return parcel;
}

/* Returns a handle, or an error: no address is so close to 0. */
FUNCTION(jlong, nativeOpen)(JNIEnv *env, jobject self, jbyteArray path, jlong epsilon, jlong delta, jboolean raise) {
    (void)self;
    jbyte *text = (*env)->GetByteArrayElements(env, path, NULL);
    if (!text) return LDP_ERROR_STORAGE;
    ldp_device *device;
    ldp_result result =
        ldp_device_open(&device, (const char *)text, (uint64_t)epsilon, (uint64_t)delta, raise == JNI_TRUE);
    (*env)->ReleaseByteArrayElements(env, path, text, JNI_ABORT);
    return result ? result : (jlong)(intptr_t)device;
}

FUNCTION(void, nativeClose)(JNIEnv *env, jobject self, jlong handle) {
    (void)env;
    (void)self;
    ldp_device_close(device_at(handle));
}

FUNCTION(jint, nativeAnswer)(JNIEnv *env, jobject self, jlong handle, jlong table, jobject values, jint value_count,
                       jobject chosen, jint chosen_count) {
    (void)self;
    ldp_value *given = (*env)->GetDirectBufferAddress(env, values);
    ldp_result result = ldp_device_answer(device_at(handle), study_at(table), given, (size_t)value_count,
                                          (*env)->GetDirectBufferAddress(env, chosen), (size_t)chosen_count);
    ldp_wipe(given, (size_t)value_count * sizeof *given);
    return result;
}

FUNCTION(jint, nativeNext)(JNIEnv *env, jobject self, jlong handle, jbyteArray bytes) {
    (void)self;
    ldp_parcel parcel = parcel_from(env, bytes);
    ldp_result result = ldp_next(&device_at(handle)->ledger, &parcel);
    (*env)->SetByteArrayRegion(env, bytes, 0, sizeof parcel, (const jbyte *)&parcel);
    return result;
}

/* Returns a report, or null. */
FUNCTION(jbyteArray, nativeReport)(JNIEnv *env, jobject self, jlong handle, jbyteArray bytes) {
    (void)self;
    ldp_parcel parcel = parcel_from(env, bytes);
    jbyteArray report = (*env)->NewByteArray(env, (jsize)parcel.size);
    jbyte *out = report ? (*env)->GetByteArrayElements(env, report, NULL) : NULL;
    if (!out) return NULL;
    ldp_result result =
        ldp_report_bytes(&device_at(handle)->ledger, &parcel, 0, (unsigned char *)out, parcel.size);
    (*env)->ReleaseByteArrayElements(env, report, out, 0);
    return result ? NULL : report;
}

FUNCTION(jint, nativeDone)(JNIEnv *env, jobject self, jlong handle, jbyteArray bytes) {
    (void)self;
    ldp_parcel parcel = parcel_from(env, bytes);
    return ldp_done(&device_at(handle)->ledger, &parcel);
}

FUNCTION(jint, nativeWithdraw)(JNIEnv *env, jobject self, jlong handle, jlong table) {
    (void)env;
    (void)self;
    return ldp_withdraw(&device_at(handle)->ledger, study_at(table));
}
