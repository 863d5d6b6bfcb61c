/* What Vectors.kt calls. */
#include <jni.h>

#include "ldpkit.h"

const ldp_study *vector_study(unsigned index);

JNIEXPORT jlong JNICALL Java_Vectors_study(JNIEnv *env, jobject self, jint index) {
    (void)env;
    (void)self;
    return (jlong)(intptr_t)vector_study((unsigned)index);
}
